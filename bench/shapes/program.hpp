// The program that measures one shape on one engine; see shapes.hpp.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "patterns.hpp"
#include "shapes.hpp"

namespace shapes {

template <class Engine>
int run_program(int argc, char** argv) {
    const bool quick = argc == 4 && std::strcmp(argv[3], "--quick") == 0;
    const int workers = argc >= 3 ? std::atoi(argv[2]) : 0;
    if (workers < 1 || argc > 4 || (argc == 4 && !quick)) {
        std::fprintf(stderr,
                     "usage: %s independent|chain|cholesky|tiles|latency|replay|efficiency|stencil|tree|fft|"
                     "all_to_all WORKERS [--quick]\n",
                     argv[0]);
        return 2;
    }
    try {
        const std::string_view shape = argv[1];
        Engine engine(workers);
        double result;
        if (shape == "independent") {
            result = ns_per_task(engine, Independent{quick ? 100'000 : 1'000'000}, 1);
        } else if (shape == "chain") {
            result = ns_per_task(engine, Chain{quick ? 20'000 : 100'000}, 3);
        } else if (shape == "cholesky") {
            result = ns_per_task(engine, Cholesky{}, quick ? 3 : 9);
        } else if (shape == "tiles") {
            result = tiles_ns_per_task(engine, quick ? 1 : 3);
        } else if (shape == "latency") {
            const Latencies found = latencies(engine, quick ? 1000 : 4000);
            std::printf("%.6g", found.insertion_ns);
            for (size_t i = 0; i < found.waited_ns.size(); i += 4) std::printf(" %.0f", found.waited_ns[i]);
            std::printf("\n");
            return 0;
        } else if (shape == "replay") {
            if constexpr (requires { typename Engine::Recorder; }) {
                result = replay_ns_per_task<typename Engine::Recorder>(engine, Cholesky{}, quick ? 3 : 15);
            } else {
                std::fprintf(stderr, "%s: this engine cannot replay\n", argv[0]);
                return 2;
            }
        } else if (shape == "efficiency") {
            result = efficiency(engine, workers, quick ? 10'000 : 50'000);
        } else if (shape == "stencil") {
            result = metg_us(engine, Dependences::kStencil, workers);
        } else if (shape == "tree") {
            result = metg_us(engine, Dependences::kTree, workers);
        } else if (shape == "fft") {
            result = metg_us(engine, Dependences::kFft, workers);
        } else if (shape == "all_to_all") {
            result = metg_us(engine, Dependences::kAllToAll, workers);
        } else {
            std::fprintf(stderr, "%s: there is no shape '%s'\n", argv[0], argv[1]);
            return 2;
        }
        std::printf("%.6g\n", result);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}

}  // namespace shapes
