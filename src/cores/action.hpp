// Action: one CPU that a member may use from now on, or must leave. Actions: the list of them that a call of
// the Ledger fills, owned by the caller and without an allocation for the few that most calls need.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/id.hpp"

namespace heddle {

struct MemberTag;
/// Who takes part in a Ledger. Never given out twice in a life of the program, for practical purposes: a slot
/// in the low bits, how often it was used in the high ones.
using MemberId = Id<MemberTag>;
inline constexpr MemberId kNobody{};

struct Action {
    enum class Kind : uint32_t { kEnable, kDisable };
    Kind kind;
    MemberId member;
    int cpu;
    Action(Kind k, MemberId m, int c) : kind(k), member(m), cpu(c) {}
    friend bool operator==(const Action&, const Action&) = default;
};

class Actions {
  public:
    Actions() {}  // NOLINT(modernize-use-equals-default): as = default it would clear inline_ in `Actions{}`

    void push(Action::Kind kind, MemberId member, int cpu) {
        if (size_ < kInline)
            std::construct_at(inline_data() + size_, kind, member, cpu);
        else
            spill({kind, member, cpu});
        ++size_;
    }
    void clear() {
        size_ = 0;
        spilled_.clear();
    }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] std::span<const Action> all() const {
        return {size_ <= kInline ? inline_data() : spilled_.data(), size_};
    }

  private:
    static constexpr size_t kInline = 8;

    void spill(const Action& action);
    Action* inline_data() { return reinterpret_cast<Action*>(inline_.data()); }
    const Action* inline_data() const { return reinterpret_cast<const Action*>(inline_.data()); }

    size_t size_ = 0;
    std::vector<Action> spilled_;  // all of them, once there are more than fit inline
    alignas(Action) std::array<std::byte, kInline * sizeof(Action)> inline_;
};

}  // namespace heddle
