// The C interface (heddle/memory.h): checkpoints.
#include "heddle/memory_checkpoint.hpp"
#include "memory/c_interface.hpp"

using namespace heddle::memory;     // NOLINT: the functions below are the C interface of all that is in it
using namespace heddle::memory::c;  // NOLINT: and this is what it is made of

namespace {

std::string path_of(const char* path) {
    if (path == nullptr) refuse("the path of the checkpoint is a null pointer");
    return path;
}

}  // namespace

heddle_memory_ret_t heddle_memory_checkpoint(heddle_memory_client_t* client, const char* path,
                                             const heddle_memory_segment_t* segments, size_t count) {
    return guarded([&] {
        if (segments == nullptr && count > 0) refuse("the segments are a null pointer");
        std::vector<SegmentId> wanted;
        for (size_t i = 0; i < count; ++i) wanted.push_back({segments[i]});
        checkpoint(object(client).client, path_of(path), wanted);
    });
}

heddle_memory_ret_t heddle_memory_restore(heddle_memory_client_t* client, const char* path, const char* kind,
                                          const heddle_memory_option_t* options, size_t count,
                                          const char* distribution,
                                          void (*each)(const heddle_memory_restored_t* one, void* data),
                                          void* data) {
    return guarded([&] {
        if (each == nullptr) refuse("there is no function to call with the new numbers");
        RestoreOptions wanted;
        if (kind != nullptr) wanted.segments = segment_description(kind, options, count);
        if (distribution != nullptr) wanted.data = data_description(distribution);
        const Restored made = restore(object(client).client, path_of(path), wanted);
        const auto tell = [&](bool is_segment, const auto& ids) {
            for (const auto& [before, now] : ids) {
                const heddle_memory_restored_t one{is_segment, before.value, now.value};
                each(&one, data);
            }
        };
        tell(true, made.segments);
        tell(false, made.data);
    });
}
