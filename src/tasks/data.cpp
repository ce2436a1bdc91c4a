#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/task.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {
namespace {

size_t bytes_of(const DataView& shape) {
    size_t elements, bytes;
    if (__builtin_mul_overflow(shape.leading, shape.columns, &elements) ||
        __builtin_mul_overflow(elements, shape.element_bytes, &bytes))
        throw Error(ErrorCode::kLimit,
                    fmt::format("{} x {} elements of {} bytes are more than any memory has", shape.rows,
                                shape.columns, shape.element_bytes));
    return bytes;
}

/// The elements go with the last share.
void give_up_share(DataState& state) noexcept {
    if (state.shares.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    try {
        state.runtime.forget(state);
        if (state.own.get() == nullptr) state.runtime.kept.bring_home(state);
    } catch (...) {
        // What was to be in memory of the caller's is lost.
    }
    state.runtime.kept.forget(state);
    state.own.reset();
    DataState::drop(&state);
}

/// Tasks that come after all that use a datum so far, each in a sequence of its own: at the root, among the
/// children of each task that the caller is in, and among those of other tasks, which may have ended before
/// them. Children are ordered among themselves alone. Each has a share of the elements, which so outlive
/// their users also where the caller cannot wait for those.
class Followers {
  public:
    enum class Reach : uint8_t { kAwaited, kAll };
    explicit Followers(DataView& view) : view_(view) {}
    ~Followers() {
        // Where a wait was refused they are still to come.
        for (const auto& one : sequences_)
            if (!one->done()) one->runtime.keep(one);
    }
    Followers(const Followers&) = delete;
    Followers& operator=(const Followers&) = delete;

    /// Those that wait() waits for, or with kAll the others, too, for data that go. Throws what an insertion
    /// does; then it may be called again.
    void insert(Reach reach) {
        RuntimeState& runtime = DataState::of(view_).runtime;
        const std::shared_ptr<Domain> here = runtime.domain_here();
        for (auto domain = here; domain != nullptr; domain = above(*domain)) {
            if (domain->is_root() && !DataState::of(view_).at_root.load(std::memory_order_relaxed)) continue;
            if (reach == Reach::kAll || !is_left_out(*domain, *here)) follow(domain);
        }
        for (const auto& domain : runtime.domains_of(DataState::of(view_))) follow(domain);
    }
    /// Throws what a wait does; then it may be called again.
    void wait() {
        RuntimeState& runtime = DataState::of(view_).runtime;
        const std::shared_ptr<Domain> here = runtime.domain_here();
        for (const auto& one : sequences_)
            if (!is_left_out(*one->domain, *here)) runtime.wait(*one);
    }

  private:
    static std::shared_ptr<Domain> above(const Domain& domain) {
        const std::shared_ptr<SequenceState> parent = domain.parent();
        return parent == nullptr ? nullptr : parent->domain;
    }
    /// Where an engine finds the order at the root itself, and others may come after the caller by data:
    /// those use the datum perhaps, and nobody would see the circle.
    [[nodiscard]] bool is_left_out(const Domain& domain, const Domain& here) const {
        return domain.is_root() && here.below_data() && DataState::of(view_).runtime.engine->own_graph();
    }
    void follow(const std::shared_ptr<Domain>& domain) {
        if (std::ranges::any_of(sequences_, [&](const auto& one) { return one->domain == domain; })) return;
        const auto sequence = std::make_shared<SequenceState>(DataState::of(view_).runtime, domain);
        sequences_.reserve(sequences_.size() + 1);
        insert(*sequence);
        sequences_.push_back(sequence);
    }
    void insert(SequenceState& sequence) {
        sequence.runtime.enter(sequence.shared_from_this());
        DataState& state = DataState::of(view_);
        const DataView* data[] = {&view_};
        const AccessMode modes[] = {AccessMode::kOut};
        Insertion follower(sequence, {&end, sizeof(DataState*), 1, false});
        *static_cast<DataState**>(follower.closure()) = &state;
        state.shares.fetch_add(1, std::memory_order_relaxed);
        follower.look_on();
        follower.commit(data, modes, nullptr);
    }

    static void end(void* state, BodyAction action) {
        if (action == BodyAction::kDestroy) give_up_share(**static_cast<DataState**>(state));
    }

    DataView& view_;
    std::vector<std::shared_ptr<SequenceState>> sequences_;
};

/// In a task that uses the datum itself.
bool is_used_by_caller(const DataState& state) {
    for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
        for (uint32_t i = 0; i < frame->task->accesses; ++i)
            if (frame->task->access(i)->data == &state) return true;
    return false;
}

void wait_for_users(DataView& view, Followers::Reach reach) {
    const DataState& state = DataState::of(view);
    if (is_used_by_caller(state))
        throw Error(ErrorCode::kInvalidArgument,
                    "a task cannot wait for data that it uses itself: it would wait for its own end");
    if (state.runtime.idle()) return;
    Followers followers(view);
    followers.insert(reach);
    followers.wait();
}

}  // namespace

void check_tiles(size_t rows, size_t columns, size_t tile, size_t leading) {
    if (tile == 0 || rows == 0 || columns == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    "a matrix of tiles needs at least one row and column, and tiles that are not empty");
    if (leading < rows)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("a leading dimension of {} is less than the {} rows of the matrix", leading, rows));
    size_t tiles = 0;
    if (__builtin_mul_overflow((rows - 1) / tile + 1, (columns - 1) / tile + 1, &tiles) ||
        tiles > std::numeric_limits<size_t>::max() / sizeof(DataState))
        throw Error(ErrorCode::kLimit, fmt::format("{} x {} elements are too many for tiles of {} x {}", rows,
                                                   columns, tile, tile));
}

DataHandle::DataHandle(Runtime& runtime, const DataView& shape) {
    if (shape.rows == 0 || shape.columns == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("data cannot have {} x {} elements: at least one is needed", shape.rows,
                                shape.columns));
    if (shape.leading < shape.rows)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a leading dimension of {} is less than the {} rows of the matrix",
                                shape.leading, shape.rows));
    const size_t bytes = bytes_of(shape);
    try {
        auto state = std::make_unique<DataState>(runtime.state(), shape);
        if (shape.address == nullptr) {
            state->own = Elements(bytes);
            state->address = std::memset(state->own.get(), 0, bytes);
        }
        view_ = state.release();
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::kLimit, fmt::format("there is no memory for data of {} bytes", bytes));
    }
}

DataHandle::~DataHandle() {
    if (view_ == nullptr) return;
    outlive_users();
    let_go();
}

/// The calling task, where it uses them, and those that wait for its end do so after this.
void DataHandle::outlive_users() noexcept {
    const DataState& state = DataState::of(*view_);
    Followers followers(*view_);
    while (true) {
        try {
            if (state.runtime.idle()) return;
            followers.insert(Followers::Reach::kAll);
            if (!is_used_by_caller(state)) followers.wait();
            return;
        } catch (const Error& error) {
            if (error.code() != ErrorCode::kLimit) return;
        } catch (const std::bad_alloc&) {
        } catch (...) {
            return;
        }
        RuntimeState::let_others_run();
    }
}

void DataHandle::let_go() noexcept {
    DataState& state = DataState::of(*std::exchange(view_, nullptr));
    state.released = true;
    give_up_share(state);
}

DataView& DataHandle::checked() const {
    if (view_ == nullptr)
        throw Error(ErrorCode::kInvalidArgument, "these data were released or moved away: make new ones");
    return *view_;
}

void DataHandle::wait() const {
    wait_for_users(checked(), Followers::Reach::kAwaited);
    DataState& state = DataState::of(checked());
    state.runtime.kept.bring_home(state);
}

void DataHandle::release() {
    wait_for_users(checked(), Followers::Reach::kAll);
    DataState& state = DataState::of(*view_);
    if (state.own.get() == nullptr) state.runtime.kept.bring_home(state);
    let_go();
}

}  // namespace heddle::detail
