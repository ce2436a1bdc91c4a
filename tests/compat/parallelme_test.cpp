// Programs written as the listings of seed 004, against parallelme/*.hpp. What was mended in the listings:
// jarrays are host pointers, addKernel is said on a Task*, setJArraySource is setSource.
#include <parallelme/ParallelME.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <vector>

#include "support/wait_until.hpp"

namespace {

using parallelme::Buffer;
using parallelme::DevicePtr;
using parallelme::KernelHash;
using parallelme::Task;

const char* const source = R"(
    __kernel void fill(int height, __global int* data) { data[get_global_id(0)] = height; }
    __kernel void twice(__global int* data) { data[get_global_id(0)] *= 2; }
    __kernel void add(__global int* data, int by) { data[get_global_id(0)] += by; }
)";

class ParallelMe : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const auto& info : heddle::devices::list_devices())
            if (info.kind == "opencl" && !info.available) GTEST_SKIP() << info.reason;
    }
};

/// The steps of section 2.1 in order: devices, program, kernels, callbacks, submission, output.
TEST_F(ParallelMe, AChainOfKernelsWithConfigureAndFinishFunctions) {
    JavaVM* jvm = nullptr;
    auto runtime = std::make_shared<parallelme::Runtime>(jvm);
    auto program = std::make_shared<parallelme::Program>(runtime, source);
    EXPECT_TRUE(program->hasDeviceID(0));
    EXPECT_TRUE(program->hasDeviceType(runtime->devices()[0]->type()));

    const size_t size = 1000;
    std::vector<int> array(size, 20), output(size);
    auto buffer = std::make_shared<Buffer>(Buffer::sizeGenerator(size, Buffer::INT));
    auto task1 = std::make_unique<Task>(program, Task::Score(2.0f, 0.5f));
    task1->addKernel("twice")->addKernel("add");
    task1->setConfigFunction([=, &array](DevicePtr&, KernelHash& kernelHash) {
        buffer->setSource(array.data());
        kernelHash["twice"]->setArg(0, buffer)->setWorkSize(size);
        kernelHash["add"]->setArg(0, buffer)->setArg(1, 2)->setWorkSize(size);
    });
    task1->setFinishFunction([=, &output](DevicePtr&, KernelHash&) { buffer->copyTo(output.data()); });
    runtime->submitTask(std::move(task1));
    runtime->finish();
    EXPECT_THAT(output, ::testing::Each(42));
    EXPECT_THAT(array, ::testing::Each(20));
}

TEST_F(ParallelMe, FinishAndThenCopyWithEachScheduler) {
    const std::vector<std::shared_ptr<parallelme::Scheduler>> schedulers{
        std::make_shared<parallelme::SchedulerFCFS>(), std::make_shared<parallelme::SchedulerHEFT>(),
        std::make_shared<parallelme::SchedulerPAMS>()};
    for (const auto& scheduler : schedulers) {
        auto runtime = std::make_shared<parallelme::Runtime>(nullptr, scheduler);
        auto program = std::make_shared<parallelme::Program>(runtime, source);
        std::vector<std::shared_ptr<Buffer>> buffers;
        for (int i = 0; i < 30; ++i) {
            auto buffer = std::make_shared<Buffer>(sizeof(int) * 8);
            buffers.push_back(buffer);
            auto task = std::make_unique<Task>(program);
            task->addKernel("fill");
            int height = i;
            task->setConfigFunction([=](DevicePtr&, KernelHash& kernelHash) {
                kernelHash["fill"]->setArg(0, height)->setArg(1, buffer)->setWorkSize(8);
            });
            runtime->submitTask(std::move(task));
        }
        runtime->finish();
        for (int i = 0; i < 30; ++i) {
            int values[8];
            buffers[static_cast<size_t>(i)]->copyTo(values);
            EXPECT_THAT(values, ::testing::Each(i));
        }
    }
}

/// Section 2.3: a scheduler of one's own; the last task first.
class MyScheduler : public parallelme::Scheduler {
  public:
    void push(std::unique_ptr<Task> task) override {
        const std::lock_guard guard(mutex_);
        tasks_.push_back(std::move(task));
    }
    std::unique_ptr<Task> pop(parallelme::Device&) override {
        const std::lock_guard guard(mutex_);
        if (tasks_.empty()) return nullptr;
        auto task = std::move(tasks_.back());
        tasks_.pop_back();
        ++popped;
        idle_.notify_all();
        return task;
    }
    void waitUntilIdle() override {
        std::unique_lock lock(mutex_);
        idle_.wait(lock, [this] { return tasks_.empty(); });
    }
    int popped = 0;

  private:
    std::mutex mutex_;
    std::condition_variable idle_;
    std::deque<std::unique_ptr<Task>> tasks_;
};

TEST_F(ParallelMe, ASchedulerOfOnesOwn) {
    const auto scheduler = std::make_shared<MyScheduler>();
    auto runtime = std::make_shared<parallelme::Runtime>(nullptr, scheduler);
    auto program = std::make_shared<parallelme::Program>(runtime, source);
    auto buffer = std::make_shared<Buffer>(sizeof(int) * 8);
    for (int i = 0; i < 10; ++i) {
        auto task = std::make_unique<Task>(program);
        task->addKernel("fill");
        task->setConfigFunction([=](DevicePtr&, KernelHash& kernelHash) {
            kernelHash["fill"]->setArg(0, 5)->setArg(1, buffer)->setWorkSize(8);
        });
        runtime->submitTask(std::move(task));
        runtime->finish();
    }
    EXPECT_EQ(scheduler->popped, 10);
    int values[8];
    buffer->copyTo(values);
    EXPECT_THAT(values, ::testing::Each(5));
    const std::weak_ptr<parallelme::Runtime> kept = runtime;
    program.reset();
    runtime.reset();
    EXPECT_TRUE(kept.expired()) << "tasks that have ended own it";
}

/// Neither finish() nor another task comes after its last one, whose own function may be the last to know it.
TEST_F(ParallelMe, ARuntimeGoesWithItsLastTask) {
    for (const bool has_scheduler : {true, false}) {
        std::shared_ptr<MyScheduler> scheduler;
        if (has_scheduler) scheduler = std::make_shared<MyScheduler>();
        std::weak_ptr<MyScheduler> known = scheduler;
        auto runtime = std::make_shared<parallelme::Runtime>(nullptr, scheduler);
        const std::weak_ptr<parallelme::Runtime> last = runtime;
        scheduler.reset();
        auto program = std::make_shared<parallelme::Program>(runtime, source);
        auto buffer = std::make_shared<Buffer>(sizeof(int) * 8);
        auto task = std::make_unique<Task>(program);
        task->addKernel("fill");
        std::atomic<bool> goes{false};
        task->setConfigFunction([=, &goes](DevicePtr&, KernelHash& kernelHash) {
            goes.wait(false);
            EXPECT_TRUE(program->hasDeviceID(0));
            kernelHash["fill"]->setArg(0, 5)->setArg(1, buffer)->setWorkSize(8);
        });
        runtime->submitTask(std::move(task));
        program.reset();
        runtime.reset();
        goes = true;
        goes.notify_all();
        EXPECT_TRUE(heddle::test::becomes_true([&] { return last.expired() && known.expired(); },
                                               std::chrono::seconds(20)));
    }
}

TEST_F(ParallelMe, ErrorsAreExceptionsAndNoCrashes) {
    auto runtime = std::make_shared<parallelme::Runtime>();
    EXPECT_THROW(parallelme::Program(runtime, "__kernel void f( {"), parallelme::ProgramCompilationError);
    auto program = std::make_shared<parallelme::Program>(runtime, source);
    Task task(program);
    EXPECT_THROW(task.addKernel("unknown"), parallelme::InvalidKernelError);
    task.addKernel("twice");
    EXPECT_THROW(task.addKernel("twice"), parallelme::InvalidKernelError);
    Buffer empty(16);
    int values[4];
    EXPECT_THROW(empty.copyTo(values), parallelme::BufferEmptyError);
    EXPECT_THROW(Buffer(0), parallelme::BufferConstructionError);
    auto failing = std::make_unique<Task>(program);
    failing->addKernel("twice");
    failing->setConfigFunction([](DevicePtr&, KernelHash&) { throw std::runtime_error("no input"); });
    runtime->submitTask(std::move(failing));
    EXPECT_THROW(runtime->finish(), parallelme::RuntimeExecutionError);
}

}  // namespace
