// Several servers that make one memory, in one process.
#pragma once

#include <thread>
#include <vector>

#include "heddle/memory.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {

/// Calls function(server, client, collective) in a thread a rank; returns when all ranks are done.
template <class Function>
void on_ranks(memory::Rank ranks, const Function& function) {
    TemporaryFolder folder;
    std::vector<std::thread> threads;
    for (memory::Rank rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            memory::Server server({rank, ranks, folder.path(), 30});
            memory::Client client(server);
            memory::Collective collective(server);
            function(server, client, collective);
            collective.barrier();
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace heddle::test
