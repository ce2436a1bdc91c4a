// Texts as the contents of global memory.
#pragma once

#include <string>

#include "heddle/memory.hpp"

namespace heddle::test {

[[nodiscard]] inline std::string text_of(const memory::ConstLocalRange& local) {
    return {reinterpret_cast<const char*>(local.pointer()), local.range.size};
}

/// What is there, by way of a cache.
[[nodiscard]] inline std::string get_text(memory::Client& client, memory::CacheId cache,
                                          const memory::GlobalRange& global) {
    const memory::ConstLocalRange local = client.get_const(global, cache);
    std::string text = text_of(local);
    client.release(local);
    return text;
}

}  // namespace heddle::test
