// ArbiterProcess: an arbiter of a described machine in a process of its own, bound to a CPU.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "arbiter/server.hpp"
#include "processes.hpp"

namespace heddle::bench {

class ArbiterProcess {
  public:
    /// Returns when it listens at `path`, or after a second.
    ArbiterProcess(const std::string& path, std::string_view topology, int cpu)
        : process_([&] { serve(path, topology, cpu); }) {
        using std::chrono::milliseconds;
        for (int i = 0; i < 1000 && !std::filesystem::exists(path); ++i)
            std::this_thread::sleep_for(milliseconds(1));
        std::this_thread::sleep_for(milliseconds(10));
    }

  private:
    static void serve(const std::string& path, std::string_view topology, int cpu) {
        bind_to(cpu);
        Os os;
        SteadyClock clock;
        ServerConfig config;
        config.path = path;
        Server(config, Arbiter(Machine::synthetic(topology), make_policy("proportional"), {}, clock.now()),
               os, clock)
            .run();
    }
    const Background process_;
};

}  // namespace heddle::bench
