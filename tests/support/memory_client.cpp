// memory_client SOCKET DATA CACHE SEED [free]: a client of a memory server that uses records of the
// allocation until it is killed, by the shared cache and by one of its own; with "free" it has none to
// itself, which others would have to wait for.
//
// All 64-bit cells of a record are one value at any time, and what is held stays as it was. It ends with 3
// where it sees anything else, with 0 where the server has gone.
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "heddle/memory.hpp"
#include "support/memory_records.hpp"

namespace {

using namespace heddle::memory;  // NOLINT: each name here is of it
using heddle::test::is_whole;
using heddle::test::kRecords;
using heddle::test::record;
using heddle::test::write_record;

class Program {
  public:
    Program(const char* path, DataId data, CacheId shared, uint32_t seed, bool exclusive)
        : data_(data), shared_(shared), exclusive_(exclusive), random_(seed), client_(path) {}

    void run() {
        std::vector<Kept> kept;
        CacheId own = client_.create_cache(8 * heddle::test::kRecordBytes);
        for (uint64_t round = 1;; ++round) {
            const CacheId cache = below(3) == 0 ? own : shared_;
            const GlobalRange one = record(data_, below(kRecords));
            try {
                use(one, cache, kept);
            } catch (const MemoryError& error) {
                // All of a cache may be in use, by this client or by others.
                if (error.memory_code() != MemoryErrorCode::kCacheFull) throw;
            }
            if (kept.size() > 3 || below(8) == 0) {
                for (const auto& [local, value] : kept) {
                    if (first_cell(local.pointer()) != value || !is_whole(local.pointer())) std::_Exit(3);
                    client_.release(local);
                }
                kept.clear();
            }
            if (round % 32 == 0 && kept.empty()) {
                client_.delete_cache(own);
                own = client_.create_cache(8 * heddle::test::kRecordBytes);
            }
        }
    }

  private:
    struct Kept {
        ConstLocalRange local;
        uint64_t value;
    };
    static uint64_t first_cell(const std::byte* record) {
        uint64_t value;
        std::memcpy(&value, record, sizeof value);
        return value;
    }
    uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

    void use(const GlobalRange& one, CacheId cache, std::vector<Kept>& kept) {
        switch (below(6)) {
            case 0:
            case 1: {
                const ConstLocalRange seen = client_.get_const(one, cache);
                if (!is_whole(seen.pointer())) std::_Exit(3);
                kept.push_back({seen, first_cell(seen.pointer())});
                return;
            }
            case 2: {
                if (!exclusive_) return;
                const MutableLocalRange own = client_.get_exclusive(one, cache);
                if (!is_whole(own.pointer())) std::_Exit(3);
                write_record(own.pointer(), random_());
                client_.put_and_release(own, one);
                return;
            }
            case 3: {
                const MutableLocalRange own = client_.allocate_local(one.range.size, cache);
                write_record(own.pointer(), random_());
                if (below(2) == 0) return client_.put_and_release(own, one);
                client_.put(own, one);
                return client_.release(own);
            }
            case 4: {
                // Never to come, and dropped.
                (void)client_.execute(op::GetConst{one, cache, Tag{1 + below(4)}});
                return;
            }
            default: {
                const auto results =
                    client_.execute_sync({op::GetMutable{one, cache}, op::GetConst{one, cache}});
                if (!is_whole(std::get<MutableLocalRange>(results[0]).pointer())) std::_Exit(3);
                client_.release(std::get<MutableLocalRange>(results[0]));
                client_.release(std::get<ConstLocalRange>(results[1]));
            }
        }
    }

    DataId data_;
    CacheId shared_;
    bool exclusive_;
    std::mt19937_64 random_;
    Client client_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5 && argc != 6) return 2;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        Program(argv[1], {std::strtoull(argv[2], nullptr, 10)}, {std::strtoull(argv[3], nullptr, 10)},
                static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10)), argc == 5)
            .run();
    } catch (const heddle::Error& error) {
        return error.code() == heddle::ErrorCode::kUnavailable ? 0 : 1;
    }
}
