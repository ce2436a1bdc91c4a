// Several engines in one process: their kernels and tasks share its CPUs, and nothing is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "heddle/cores.hpp"
#include "heddle/machine.hpp"
#include "heddle/offload.hpp"
#include "support/kernels.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using std::chrono::microseconds;

std::vector<std::string> available_engines() {
    std::vector<std::string> names;
    for (const EngineInfo& engine : Runtime::engines())
        if (engine.available) names.push_back(engine.name);
    return names;
}

CpuSet all_cpus() {
    return allowance(Machine::detect()).usable;
}

TEST(CompositionTest, EnginesOnCpusOfTheirOwnStayThere) {
    if (all_cpus().count() < 2) GTEST_SKIP() << "skipped: one CPU";
    const auto engines = available_engines();
    const CpuSet first{all_cpus().first()}, last{all_cpus().last()};
    for (size_t i = 0; i < engines.size(); ++i) {
        const std::string &one = engines[i], &other = engines[(i + 1) % engines.size()];
        Offload a(one, first), b(other, last);
        test::Places places_a, places_b;
        for (int round = 0; round < 10; ++round) {
            const auto kernel = [](const std::string& engine, test::Places& places) {
                return [&] { test::in_parallel(engine, 8, [&](int) { places.note(); }); };
            };
            (void)a.spawn(kernel(one, places_a));
            (void)b.spawn(kernel(other, places_b));
        }
        a.wait();
        b.wait();
        EXPECT_EQ(places_a.allowed(), first) << one;
        EXPECT_EQ(places_b.allowed(), last) << other;
    }
}

TEST(CompositionTest, WhatOneEngineDoesNotUseAnotherHas) {
    if (all_cpus().count() < 2) GTEST_SKIP() << "skipped: one CPU";
    const CpuSet two{all_cpus().first(), all_cpus().last()};
    std::vector<std::unique_ptr<Offload>> offloads;
    for (const std::string& engine : available_engines())
        offloads.push_back(std::make_unique<Offload>(engine, two));
    // Each in turn has work for both CPUs: two items that wait for each other.
    for (int round = 0; round < 10; ++round)
        for (const auto& offload : offloads) {
            std::atomic<int> inside{0};
            offload
                ->spawn([&] {
                    test::in_parallel(offload->engine(), 2, [&](int) {
                        ++inside;
                        const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
                        while (inside < 2 && std::chrono::steady_clock::now() < patience)
                            std::this_thread::yield();
                    });
                })
                .wait();
            EXPECT_EQ(inside, 2) << offload->engine();
        }
}

TEST(CompositionTest, CpusAreRevokedAtRandomAndNothingIsLost) {
    if (all_cpus().count() < 2) GTEST_SKIP() << "skipped: one CPU";
    const CpuSet mine{all_cpus().last()};
    Component owner("owner", mine);
    (void)owner.lend();
    std::atomic<long> items{0}, tasks{0};
    std::atomic<bool> over{false};
    const int kernels = test::kSanitized ? 10 : 40;
    const auto engines = available_engines();
    {
        std::vector<std::jthread> threads;
        for (const std::string& engine : engines) {
            // Kernels, and tasks of a runtime beside them.
            threads.emplace_back([&, engine] {
                Offload offload(engine);
                for (int i = 0; i < kernels; ++i)
                    (void)offload.spawn([&, engine] {
                        test::in_parallel(engine, 16, [&](int) {
                            test::spend(microseconds(20));
                            ++items;
                        });
                    });
                offload.wait();
            });
            threads.emplace_back([&, engine] {
                Runtime runtime({.engine = engine, .cpus = {}, .workers = 0});
                Sequence sequence(runtime);
                for (int i = 0; i < 1'000; ++i)
                    sequence.insert([&] {
                        test::spend(microseconds(5));
                        ++tasks;
                    });
                sequence.wait();
            });
        }
        std::jthread revoker([&] {
            std::mt19937 random(11);
            while (!over) {
                (void)owner.reclaim();
                test::spend(microseconds(random() % 2'000));
                (void)owner.lend();
                test::spend(microseconds(random() % 2'000));
            }
        });
        for (auto& thread : threads) thread.join();
        over = true;
    }
    EXPECT_EQ(items, static_cast<long>(engines.size()) * kernels * 16);
    EXPECT_EQ(tasks, static_cast<long>(engines.size()) * 1'000);
}

}  // namespace
}  // namespace heddle
