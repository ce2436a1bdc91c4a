// Parts of a segment that are reached by messages of MPI: a rank asks, and a thread of the rank that has the
// part answers.
//
// That thread alone waits for who has asked, and who has asked for that thread alone, so that nobody waits in
// a circle. A question is copied and checked before it is answered.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/signals_blocked.hpp"
#include "memory/segments/mpi/mpi_runtime.hpp"
#include "memory/segments/mpi/mpi_segments.hpp"
#include "memory/segments/mpi/patience.hpp"

namespace heddle::memory {
namespace {

constexpr int kQuestionTag = 0;
/// Answers have tags from 1 on; MPI knows as many at least.
constexpr uint32_t kTags = 32'766;

struct Question {
    uint64_t offset = 0;
    uint64_t size = 0;
    int32_t tag = 0;
    int32_t writes = 0;
};

struct Freed {
    void operator()(std::byte* memory) const { std::free(memory); }
};

class MessageSegment final : public Segment {
  public:
    MessageSegment(Rank self, uint64_t size)
        : self_(self),
          size_(size),
          part_(static_cast<std::byte*>(std::calloc(std::max<size_t>(1, size), 1))),
          questions_(communicator_of_changes().get()),
          answers_(communicator_of_changes().get()) {
        const std::string problem = questions_.first_problem(
            part_ == nullptr ? fmt::format("cannot have {} bytes of memory", size) : "");
        if (!problem.empty()) throw Error(ErrorCode::kSystem, problem);
        const SignalsBlocked blocked;
        thread_ = std::thread([this] { answer_all(); });
    }
    ~MessageSegment() override {
        wait_for_all();
        stopping_ = true;
        thread_.join();
    }
    MessageSegment(const MessageSegment&) = delete;
    MessageSegment& operator=(const MessageSegment&) = delete;

    std::byte* address() noexcept override { return part_.get(); }
    std::string contact() const override { return "messages"; }
    void attach(const std::vector<std::string>&) override {}
    void read(Rank rank, uint64_t offset, std::byte* to, uint64_t size) override {
        if (rank == self_) {
            std::memcpy(to, part_.get() + offset, size);
            return;
        }
        for (uint64_t done = 0; done < size; done += kMostAtOnce)
            read_some(rank, offset + done, to + done, std::min(kMostAtOnce, size - done));
    }
    void write(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) override {
        if (rank == self_) {
            std::memmove(part_.get() + offset, from, size);  // it may be of the same part
            return;
        }
        for (uint64_t done = 0; done < size; done += kMostAtOnce)
            write_some(rank, offset + done, from + done, std::min(kMostAtOnce, size - done));
    }

  private:
    int next_tag() { return static_cast<int>(last_tag_++ % kTags) + 1; }

    /// Throws where fewer bytes came.
    void read_some(Rank rank, uint64_t offset, std::byte* to, uint64_t size) {
        const Question question{offset, size, next_tag(), 0};
        MPI_Request answer;
        MPI_Status status;
        int count = 0;
        check_mpi(MPI_Irecv(to, static_cast<int>(size), MPI_BYTE, static_cast<int>(rank), question.tag,
                            answers_.get(), &answer),
                  "MPI_Irecv");
        ask(rank, question);
        check_mpi(MPI_Wait(&answer, &status), fmt::format("a message from rank {}", rank));
        check_mpi(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
        if (count != static_cast<int>(size)) refused(rank, question);
    }
    void write_some(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) {
        const Question question{offset, size, next_tag(), 1};
        int taken = 0;
        ask(rank, question);
        check_mpi(MPI_Send(from, static_cast<int>(size), MPI_BYTE, static_cast<int>(rank), question.tag,
                           questions_.get()),
                  fmt::format("a message to rank {}", rank));
        check_mpi(MPI_Recv(&taken, 1, MPI_INT, static_cast<int>(rank), question.tag, answers_.get(),
                           MPI_STATUS_IGNORE),
                  fmt::format("a message from rank {}", rank));
        if (taken == 0) refused(rank, question);
    }
    void ask(Rank rank, const Question& question) {
        check_mpi(MPI_Send(&question, sizeof question, MPI_BYTE, static_cast<int>(rank), kQuestionTag,
                           questions_.get()),
                  fmt::format("a message to rank {}", rank));
    }
    [[noreturn]] static void refused(Rank rank, const Question& question) {
        throw Error(ErrorCode::kSystem, fmt::format("rank {} has no {} bytes at {} in its part of a segment",
                                                    rank, question.size, question.offset));
    }

    void answer_all() {
        Patience patience;
        while (!stopping_) {
            int arrived = 0;
            MPI_Message message;
            MPI_Status status;
            if (MPI_Improbe(MPI_ANY_SOURCE, kQuestionTag, questions_.get(), &arrived, &message, &status) !=
                    MPI_SUCCESS ||
                arrived == 0) {
                patience.nap();
                continue;
            }
            patience.restart();
            Question question;
            if (MPI_Mrecv(&question, sizeof question, MPI_BYTE, &message, &status) == MPI_SUCCESS)
                answer(status.MPI_SOURCE, question);
        }
    }
    /// What goes wrong here is told by MPI to who has asked.
    void answer(int rank, const Question& question) {
        if (question.size > kMostAtOnce || question.tag < 1) return;
        const bool inside = question.offset <= size_ && question.size <= size_ - question.offset;
        const int count = static_cast<int>(question.size);
        if (question.writes == 0) {
            MPI_Send(part_.get() + (inside ? question.offset : 0), inside ? count : 0, MPI_BYTE, rank,
                     question.tag, answers_.get());
            return;
        }
        std::vector<std::byte> refused(inside ? 0 : question.size);
        const int taken = inside ? 1 : 0;
        MPI_Recv(inside ? part_.get() + question.offset : refused.data(), count, MPI_BYTE, rank, question.tag,
                 questions_.get(), MPI_STATUS_IGNORE);
        MPI_Send(&taken, 1, MPI_INT, rank, question.tag, answers_.get());
    }

    /// Until no other rank can ask any more; meanwhile it is answered.
    void wait_for_all() {
        MPI_Request all;
        int done = 0;
        if (!mpi_is_running() || MPI_Ibarrier(answers_.get(), &all) != MPI_SUCCESS) return;
        for (Patience patience; MPI_Test(&all, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0;)
            patience.nap();
    }

    Rank self_;
    uint64_t size_;
    std::unique_ptr<std::byte, Freed> part_;
    Communicator questions_, answers_;
    std::atomic<uint32_t> last_tag_{0};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace

std::unique_ptr<Segment> make_message_segment(Rank self, uint64_t size) {
    return std::make_unique<MessageSegment>(self, size);
}

}  // namespace heddle::memory
