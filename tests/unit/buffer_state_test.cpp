// Where the ranges of a buffer are valid while copies are under way, on devices whose copies end when the
// test says so.
#include "devices/buffer_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace heddle::devices {
namespace {

struct FakeMemory final : DriverMemory {
    explicit FakeMemory(size_t size) : bytes(size) {}
    std::vector<std::byte> bytes;
};

/// Takes the host's bytes when it ends, as a device may.
struct Transfer {
    std::atomic<int> outcome{0};  // 0: under way, 1: well, -1: failed
    FakeMemory* memory = nullptr;
    size_t offset = 0, size = 0;
    const void* from = nullptr;
    void end(bool well) {
        if (well) std::memcpy(memory->bytes.data() + offset, from, size);
        outcome = well ? 1 : -1;
        outcome.notify_all();
    }
};

class FakeCopy final : public DriverCopy {
  public:
    explicit FakeCopy(std::shared_ptr<Transfer> transfer) : transfer_(std::move(transfer)) {}
    [[nodiscard]] bool has_ended() override { return transfer_->outcome != 0; }
    [[nodiscard]] bool finish() override {
        transfer_->outcome.wait(0);
        return transfer_->outcome > 0;
    }

  private:
    std::shared_ptr<Transfer> transfer_;
};

class FakeDriver final : public DeviceDriver {
  public:
    explicit FakeDriver(bool shares) { info_.shares_host_memory = shares; }
    [[nodiscard]] const DeviceInfo& info() const override { return info_; }
    [[nodiscard]] std::shared_ptr<DriverProgram> build(const ProgramSource&) override { return nullptr; }
    [[nodiscard]] std::unique_ptr<DriverMemory> allocate(size_t bytes, void*) override {
        return std::make_unique<FakeMemory>(bytes);
    }
    [[nodiscard]] std::unique_ptr<DriverCopy> write(DriverMemory& memory, size_t offset, size_t bytes,
                                                    const void* from) override {
        auto transfer = std::make_shared<Transfer>();
        transfer->memory = static_cast<FakeMemory*>(&memory);
        transfer->offset = offset;
        transfer->size = bytes;
        transfer->from = from;
        transfers.push_back(transfer);
        return std::make_unique<FakeCopy>(transfer);
    }
    void read(DriverMemory& memory, size_t offset, size_t bytes, void* to) override {
        ++reads;
        std::memcpy(to, static_cast<FakeMemory&>(memory).bytes.data() + offset, bytes);
    }
    void launch(DriverProgram&, const std::string&, std::span<const DriverArgument>,
                const LaunchShape&) override {}
    [[nodiscard]] Mark mark() override { return 0; }
    void wait(Mark) override {}
    [[nodiscard]] double now_us() const override { return 0; }
    [[nodiscard]] double copy_us(size_t bytes) const override { return static_cast<double>(bytes); }

    std::vector<std::shared_ptr<Transfer>> transfers;
    size_t reads = 0;

  private:
    DeviceInfo info_;
};

class BufferCopies : public ::testing::Test {
  protected:
    static constexpr ByteRange kAll{0, 100};
    FakeMemory& fetch(const std::shared_ptr<FakeDriver>& driver, ByteRange range = kAll) {
        return static_cast<FakeMemory&>(buffer_->acquire(driver, range, true, false));
    }
    /// That it waits for the copy, and goes on when that ends.
    static void expect_waits(Transfer& copy, const std::function<void()>& act) {
        std::atomic<bool> done{false};
        std::jthread thread([&] {
            act();
            done = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(done);
        copy.end(true);
        thread.join();
        EXPECT_TRUE(done);
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(100, std::byte{1});
    std::shared_ptr<FakeDriver> far_ = std::make_shared<FakeDriver>(false),
                                other_ = std::make_shared<FakeDriver>(false),
                                near_ = std::make_shared<FakeDriver>(true);
    std::unique_ptr<BufferState> buffer_ = std::make_unique<BufferState>(memory_.data(), 100, "data");
};

TEST_F(BufferCopies, ARangeOnItsWayIsNotSentAgain) {
    fetch(far_, {0, 60});
    fetch(far_, {40, 40});
    ASSERT_EQ(far_->transfers.size(), 2u);
    EXPECT_EQ(far_->transfers[1]->offset, 60u);
    EXPECT_EQ(far_->transfers[1]->size, 20u);
    EXPECT_DOUBLE_EQ(buffer_->fetch_us(*far_, kAll), 20);
    EXPECT_DOUBLE_EQ(buffer_->fetch_us(*other_, kAll), 100);
    for (const auto& transfer : far_->transfers) transfer->end(true);
    fetch(far_, {0, 80});
    EXPECT_EQ(far_->transfers.size(), 2u);
    fetch(other_);
    EXPECT_EQ(other_->transfers.size(), 1u) << "each device gets it";
    other_->transfers[0]->end(true);
}

TEST_F(BufferCopies, ACopyThatFailedIsNotValidAndSentAgain) {
    fetch(far_);
    far_->transfers[0]->end(false);
    EXPECT_EQ(fetch(far_).bytes[0], std::byte{0});
    ASSERT_EQ(far_->transfers.size(), 2u);
    far_->transfers[1]->end(true);
    EXPECT_EQ(fetch(far_).bytes[0], std::byte{1});
    EXPECT_EQ(far_->transfers.size(), 2u);
}

TEST_F(BufferCopies, WhoChangesTheHostsBytesWaitsForTheCopyOfThem) {
    fetch(far_, {0, 50});
    buffer_->acquire_host({50, 50}, false, true);  // others
    expect_waits(*far_->transfers[0], [&] { buffer_->acquire_host({49, 10}, false, true); });
    fetch(far_, {0, 50});
    ASSERT_EQ(far_->transfers.size(), 2u) << "one byte was changed";
    EXPECT_EQ(far_->transfers[1]->size, 1u);
    expect_waits(*far_->transfers[1], [&] { buffer_->acquire(near_, kAll, false, true); });
}

TEST_F(BufferCopies, WhoReadsTheHostsBytesDoesNotWait) {
    fetch(far_);
    buffer_->acquire_host(kAll, true, false);
    buffer_->acquire(near_, kAll, true, false);
    far_->transfers[0]->end(true);
}

TEST_F(BufferCopies, AWriteElsewhereEndsTheValidityOfACopyThatWasOnItsWay) {
    fetch(far_);
    FakeMemory& changed = static_cast<FakeMemory&>(buffer_->acquire(other_, kAll, false, true));
    changed.bytes.assign(100, std::byte{2});
    expect_waits(*far_->transfers[0], [&] { buffer_->written(*other_, kAll); });
    fetch(far_);
    EXPECT_EQ(other_->reads, 1u);
    ASSERT_EQ(far_->transfers.size(), 2u);
    far_->transfers[1]->end(true);
    EXPECT_EQ(fetch(far_).bytes[99], std::byte{2});
}

TEST_F(BufferCopies, ADeviceThatDiesDuringACopyTakesNothingWithIt) {
    fetch(far_);
    far_->dead = true;
    far_->transfers[0]->end(false);
    fetch(other_);
    other_->transfers[0]->end(true);
    EXPECT_EQ(fetch(other_).bytes[0], std::byte{1});
    buffer_->acquire_host(kAll, true, false);
    EXPECT_EQ(memory_[0], std::byte{1});
}

TEST_F(BufferCopies, TheEndOfABufferWaits) {
    fetch(far_);
    expect_waits(*far_->transfers[0], [&] { buffer_.reset(); });
}

TEST_F(BufferCopies, TheEndOfATaskWaitsForThoseOfItsRanges) {
    fetch(far_, {0, 50});
    fetch(far_, {50, 50});
    expect_waits(*far_->transfers[1], [&] { buffer_->finish_uploads({60, 10}); });
    far_->transfers[0]->end(true);
}

}  // namespace
}  // namespace heddle::devices
