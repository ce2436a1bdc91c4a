// Sub-devices of chosen CPUs, through libheddle_cl as a program has it, and who uses their CPUs.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "heddle/compat/CL/cl_heddle.h"
#include "heddle/cores.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "support/cl_session.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using test::becomes_true;
using test::ClSession;
using test::cpu_device;
using test::info_of;

class SubDevices : public ::testing::Test {
  protected:
    void SetUp() override {
        device = cpu_device();
        if (device == nullptr) GTEST_SKIP() << "there is no OpenCL device of type CPU";
        cpus = set_of(device);
        if (cpus.count() < 2) GTEST_SKIP() << "it has one CPU";
        size_t bytes = 0;
        clGetDeviceInfo(device, CL_DEVICE_PARTITION_PROPERTIES, 0, nullptr, &bytes);
        if (bytes != 5 * sizeof(cl_device_partition_property)) GTEST_SKIP() << "its threads cannot be bound";
    }
    void TearDown() override {
        for (cl_device_id one : made) clReleaseDevice(one);
    }

    static CpuSet set_of(cl_device_id of) {
        const auto set = info_of<cpu_set_t>(of, CL_DEVICE_CPU_SET_HEDDLE);
        return CpuSet::from_native(&set, sizeof set);
    }
    std::vector<cl_device_id> divide(std::vector<cl_device_partition_property> properties,
                                     cl_int expected = CL_SUCCESS) {
        cl_uint count = 0;
        EXPECT_EQ(clCreateSubDevices(device, properties.data(), 0, nullptr, &count), expected);
        if (expected != CL_SUCCESS) return {};
        std::vector<cl_device_id> parts(count);
        EXPECT_EQ(clCreateSubDevices(device, properties.data(), count, parts.data(), nullptr), CL_SUCCESS);
        made.insert(made.end(), parts.begin(), parts.end());
        return parts;
    }

    cl_device_id device = nullptr;
    CpuSet cpus;
    std::vector<cl_device_id> made;
};

struct MaskArgs {
    cpu_set_t* mask;
};
void note_mask(void* args) {
    sched_getaffinity(0, sizeof(cpu_set_t), static_cast<MaskArgs*>(args)->mask);
}

/// Where a kernel of the driver's runs, and one of heddle's.
void expect_inside(cl_device_id device, const CpuSet& cpus) {
    ClSession session(device);
    for (int i = 0; i < 20; ++i) {
        cpu_set_t drivers, ours;
        CPU_ZERO(&drivers);
        CPU_ZERO(&ours);
        MaskArgs plain{&drivers}, typed{&ours};
        ASSERT_EQ(clEnqueueNativeKernel(session.queue, note_mask, &plain, sizeof plain, 0, nullptr, nullptr,
                                        0, nullptr, nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(clEnqueueNativeKernelWithType(session.queue, note_mask, &typed, sizeof typed, 0, nullptr,
                                                nullptr, CL_NATIVE_KERNEL_HEDDLE, 0, nullptr, nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(clFinish(session.queue), CL_SUCCESS);
        EXPECT_EQ(CpuSet::from_native(&drivers, sizeof drivers), cpus);
        const CpuSet own = CpuSet::from_native(&ours, sizeof ours);
        EXPECT_FALSE(own.empty());
        EXPECT_TRUE(cpus.contains(own)) << own.to_list() << " of " << cpus.to_list();
    }
}

TEST_F(SubDevices, EachWayOfDividingGivesTheCpusThatItSays) {
    const int last = cpus.last();
    cpu_set_t one_set, all_set;
    CPU_ZERO(&one_set);
    CPU_SET(last, &one_set);
    CPU_ZERO(&all_set);
    for (const int cpu : cpus) CPU_SET(cpu, &all_set);
    const auto pointer = [](cpu_set_t& set) { return reinterpret_cast<cl_device_partition_property>(&set); };
    CpuSet rest = cpus;
    rest.erase(cpus.first());
    struct Case {
        std::vector<cl_device_partition_property> properties;
        std::vector<CpuSet> sets;
    };
    std::vector<Case> cases{
        {{CL_DEVICE_PARTITION_BY_COUNTS, 1, cpus.count() - 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0},
         {{cpus.first()}, rest}},
        {{CL_DEVICE_PARTITION_BY_NAMES_HEDDLE, cpus.count() - 1, CL_PARTITION_BY_NAMES_LIST_END_HEDDLE, 0},
         {{last}}},
        {{CL_DEVICE_PARTITION_BY_CPU_SET_HEDDLE, pointer(one_set), 0}, {{last}}},
        {{CL_DEVICE_PARTITION_EQUALLY, cpus.count(), 0}, {cpus}},
    };
    for (const Case& one : cases) {
        const std::vector<cl_device_id> parts = divide(one.properties);
        ASSERT_EQ(parts.size(), one.sets.size());
        for (size_t i = 0; i < parts.size(); ++i) {
            EXPECT_EQ(set_of(parts[i]), one.sets[i]);
            EXPECT_EQ(info_of<cl_uint>(parts[i], CL_DEVICE_MAX_COMPUTE_UNITS),
                      static_cast<cl_uint>(one.sets[i].count()));
            EXPECT_EQ(info_of<cl_device_id>(parts[i], CL_DEVICE_PARENT_DEVICE), device);
            std::vector<cl_device_partition_property> how(one.properties.size());
            size_t bytes = 0;
            clGetDeviceInfo(parts[i], CL_DEVICE_PARTITION_TYPE, how.size() * sizeof how[0], how.data(),
                            &bytes);
            EXPECT_GE(bytes, 3 * sizeof how[0]);
            EXPECT_EQ(how[0], one.properties[0]);
            EXPECT_EQ(how[1], one.properties[1]);
            expect_inside(parts[i], one.sets[i]);
        }
        for (cl_device_id part : parts) EXPECT_EQ(clReleaseDevice(part), CL_SUCCESS);
        made.clear();
    }
    const std::vector<cl_device_id> nodes =
        divide({CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0});
    CpuSet together;
    for (cl_device_id node : nodes) {
        EXPECT_FALSE(together.intersects(set_of(node)));
        together |= set_of(node);
        expect_inside(node, set_of(node));
    }
    EXPECT_EQ(together, cpus);
}

/// As bindings of OpenCL for other languages do. Its CPUs are its own as long as there is the queue.
TEST_F(SubDevices, OneMayBeReleasedAsSoonAsThereIsAQueue) {
    const cl_device_id part = divide({CL_DEVICE_PARTITION_EQUALLY, 1, 0}).front();
    const CpuSet own = set_of(part);
    {
        ClSession session(part);
        for (cl_device_id one : made) EXPECT_EQ(clReleaseDevice(one), CL_SUCCESS);
        made.clear();
        EXPECT_THROW(Component("other", own), Error);
        EXPECT_EQ(clRetainCommandQueue(session.queue), CL_SUCCESS);
        EXPECT_EQ(clReleaseCommandQueue(session.queue), CL_SUCCESS);
        EXPECT_THROW(Component("other", own), Error);
    }
    EXPECT_NO_THROW(Component("other", own));
}

/// What runs there still has the CPUs, and nobody else: of the driver's, and one that the layer holds back.
class SubDevicesGo : public SubDevices, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Commands, SubDevicesGo, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "held" : "drivers"; });
TEST_P(SubDevicesGo, WhenTheirCommandsHaveEnded) {
    const auto of_set = [&](const CpuSet& set) {
        cpu_set_t native;
        CPU_ZERO(&native);
        for (const int cpu : set) CPU_SET(cpu, &native);
        cl_device_id one = nullptr;
        const std::array<cl_device_partition_property, 3> how{
            CL_DEVICE_PARTITION_BY_CPU_SET_HEDDLE, reinterpret_cast<cl_device_partition_property>(&native),
            0};
        return std::pair(clCreateSubDevices(device, how.data(), 1, &one, nullptr), one);
    };
    // Of three CPUs the first two, and then the last two, cannot be had at once.
    const bool three = cpus.count() == 3;
    const CpuSet own = three ? CpuSet{cpus.first(), cpus.next(cpus.first())} : CpuSet{cpus.first()};
    const CpuSet next = three ? CpuSet{cpus.next(cpus.first()), cpus.last()} : CpuSet{cpus.first()};
    const auto [made_well, part] = of_set(own);
    ASSERT_EQ(made_well, CL_SUCCESS);
    cl_context const context = clCreateContext(nullptr, 1, &part, nullptr, nullptr, nullptr);
    cl_command_queue const queue = clCreateCommandQueueWithProperties(context, part, nullptr, nullptr);
    cl_event const gate = clCreateUserEvent(context, nullptr);
    std::atomic<bool> ran{false};
    struct Args {
        std::atomic<bool>* ran;
    } args{&ran};
    const auto runs = [](void* given) { *static_cast<Args*>(given)->ran = true; };
    ASSERT_EQ(GetParam() ? clEnqueueNativeKernelWithType(queue, runs, &args, sizeof args, 0, nullptr, nullptr,
                                                         CL_NATIVE_KERNEL_HEDDLE, 1, &gate, nullptr)
                         : clEnqueueNativeKernel(queue, runs, &args, sizeof args, 0, nullptr, nullptr, 1,
                                                 &gate, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clReleaseDevice(part), CL_SUCCESS);
    EXPECT_EQ(clReleaseCommandQueue(queue), CL_SUCCESS);
    EXPECT_EQ(clReleaseContext(context), CL_SUCCESS);
    EXPECT_THROW(Component("other", own), Error);
    if (three) {
        EXPECT_EQ(of_set(next).first, CL_DEVICE_PARTITION_FAILED);
    }
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    const auto [made_again, again] = of_set(next);  // which waits for the end
    EXPECT_EQ(made_again, CL_SUCCESS);
    EXPECT_EQ(ran || !three, true);
    EXPECT_EQ(clReleaseEvent(gate), CL_SUCCESS);
    EXPECT_EQ(clReleaseDevice(again), CL_SUCCESS);
    EXPECT_TRUE(becomes_true([&] {
        try {
            const Component other("other", own);
            return true;
        } catch (const Error&) {
            return false;
        }
    }));
    EXPECT_TRUE(ran);
}

TEST_F(SubDevices, CpusThatAreNotTheDevicesAreRefused) {
    cpu_set_t foreign, none;
    CPU_ZERO(&none);
    CPU_ZERO(&foreign);
    CPU_SET(cpus.last() + 1, &foreign);
    const auto pointer = [](cpu_set_t& set) { return reinterpret_cast<cl_device_partition_property>(&set); };
    (void)divide({CL_DEVICE_PARTITION_BY_CPU_SET_HEDDLE, pointer(foreign), 0},
                 CL_INVALID_DEVICE_PARTITION_COUNT);
    (void)divide({CL_DEVICE_PARTITION_BY_CPU_SET_HEDDLE, pointer(none), 0},
                 CL_INVALID_DEVICE_PARTITION_COUNT);
    (void)divide(
        {CL_DEVICE_PARTITION_BY_NAMES_HEDDLE, cpus.count(), CL_PARTITION_BY_NAMES_LIST_END_HEDDLE, 0},
        CL_INVALID_DEVICE_PARTITION_COUNT);
    (void)divide({CL_DEVICE_PARTITION_BY_COUNTS, cpus.count(), 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0},
                 CL_INVALID_DEVICE_PARTITION_COUNT);
    (void)divide({CL_DEVICE_PARTITION_EQUALLY, cpus.count() + 1, 0}, CL_DEVICE_PARTITION_FAILED);
    (void)divide({CL_DEVICE_PARTITION_EQUALLY, 0, 0}, CL_INVALID_VALUE);
    (void)divide({0x7777, 1, 0}, CL_INVALID_VALUE);
}

TEST_F(SubDevices, KernelsOnDisjointSetsNeverShareACpu) {
    const std::vector<cl_device_id> parts = divide({CL_DEVICE_PARTITION_EQUALLY, cpus.count() / 2, 0});
    ASSERT_GE(parts.size(), 2u);
    for (const bool typed : {false, true}) {
        std::atomic<int> wrong{0};
        std::vector<std::jthread> threads;
        for (size_t part = 0; part < 2; ++part)
            threads.emplace_back([&, part] {
                ClSession session(parts[part]);
                const CpuSet own = set_of(parts[part]);
                for (int i = 0; i < 500; ++i) {
                    cpu_set_t mask;
                    CPU_ZERO(&mask);
                    MaskArgs args{&mask};
                    const cl_int code =
                        typed ? clEnqueueNativeKernelWithType(session.queue, note_mask, &args, sizeof args, 0,
                                                              nullptr, nullptr, CL_NATIVE_KERNEL_HEDDLE, 0,
                                                              nullptr, nullptr)
                              : clEnqueueNativeKernel(session.queue, note_mask, &args, sizeof args, 0,
                                                      nullptr, nullptr, 0, nullptr, nullptr);
                    if (code != CL_SUCCESS || clFinish(session.queue) != CL_SUCCESS ||
                        !own.contains(CpuSet::from_native(&mask, sizeof mask)))
                        ++wrong;
                }
            });
        threads.clear();
        EXPECT_EQ(wrong, 0) << typed;
    }
}

struct GateArgs {
    std::atomic<int>* state;
};
void stay(void* args) {
    std::atomic<int>& state = *static_cast<GateArgs*>(args)->state;
    state = 1;
    state.notify_all();
    state.wait(1);
}

TEST_F(SubDevices, TheyLendTheirCpusAsLongAsNothingRunsThere) {
    const std::vector<cl_device_id> parts = divide({CL_DEVICE_PARTITION_EQUALLY, 1, 0});
    const int cpu = set_of(parts[1]).first();
    ClSession session(parts[1]);
    Component other("other", {});
    // Runtimes of kernels that have ended wind down.
    while (other.borrow_cpu(cpu) != Outcome::kSuccess) std::this_thread::yield();
    std::atomic<int> state{0};
    GateArgs args{&state};
    ASSERT_EQ(clEnqueueNativeKernel(session.queue, stay, &args, sizeof args, 0, nullptr, nullptr, 0, nullptr,
                                    nullptr),
              CL_SUCCESS);
    clFlush(session.queue);
    state.wait(0);
    EXPECT_TRUE(other.to_return().contains(cpu));
    EXPECT_EQ(other.return_cpu(cpu), Outcome::kSuccess);
    EXPECT_EQ(other.borrow_cpu(cpu), Outcome::kNoUpdate);
    state = 2;
    state.notify_all();
    clFinish(session.queue);
    // The driver tells a moment later that it has ended.
    while (other.borrow_cpu(cpu) != Outcome::kSuccess) std::this_thread::yield();
}

TEST_F(SubDevices, TheyLendTheirCpusAgainWhereWhatWasToRunThereFails) {
    const std::vector<cl_device_id> parts = divide({CL_DEVICE_PARTITION_EQUALLY, 1, 0});
    const int cpu = set_of(parts[1]).first();
    ClSession session(parts[1]);
    cl_mem buffer = session.buffer(sizeof(int));
    int value = 0;
    cl_event gate = clCreateUserEvent(session.context, nullptr), read = nullptr;
    ASSERT_EQ(clEnqueueReadBuffer(session.queue, buffer, CL_FALSE, 0, sizeof value, &value, 1, &gate, &read),
              CL_SUCCESS);
    Component other("other", {});
    EXPECT_EQ(other.borrow_cpu(cpu), Outcome::kNoUpdate);
    clSetUserEventStatus(gate, -5);
    EXPECT_EQ(other.borrow_cpu(cpu), Outcome::kSuccess);
    clReleaseEvent(read);
    clReleaseEvent(gate);
}

/// The callback runs in the thread that takes the CPU back.
TEST_F(SubDevices, WhoBorrowedTheirCpusMayAskAboutThemWhenItGivesThemBack) {
    const std::vector<cl_device_id> parts = divide({CL_DEVICE_PARTITION_EQUALLY, 1, 0});
    const int cpu = set_of(parts[1]).first();
    ClSession session(parts[1]);
    Component other("other", {});
    std::atomic<cl_uint> references{0};
    (void)other.on_disable_cpu([&](int lost) {
        references = info_of<cl_uint>(parts[1], CL_DEVICE_REFERENCE_COUNT);
        (void)other.return_cpu(lost);
    });
    while (other.borrow_cpu(cpu) != Outcome::kSuccess) std::this_thread::yield();
    cpu_set_t mask;
    MaskArgs args{&mask};
    ASSERT_EQ(clEnqueueNativeKernel(session.queue, note_mask, &args, sizeof args, 0, nullptr, nullptr, 0,
                                    nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clFinish(session.queue), CL_SUCCESS);
    EXPECT_EQ(references, 1u);
}

TEST_F(SubDevices, NoneIsDividedIntoItself) {
    const std::vector<cl_device_id> parts = divide({CL_DEVICE_PARTITION_EQUALLY, 1, 0});
    const std::array<cl_device_partition_property, 3> all{CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id again = nullptr;
    EXPECT_EQ(clCreateSubDevices(parts[0], all.data(), 1, &again, nullptr), CL_DEVICE_PARTITION_FAILED);
    EXPECT_EQ(info_of<cl_device_id>(parts[0], CL_DEVICE_PARENT_DEVICE), device);
}

}  // namespace
}  // namespace heddle
