#include "streams/turns.hpp"

namespace heddle::streams {
namespace {

/// Of this thread: turns that are to be told of as over, only while one of them is; and where they end.
struct Ended {
    bool telling = false;
    Flow* here = nullptr;
    Turn *first = nullptr, *last = nullptr;
};
thread_local Ended ended_here;

}  // namespace

TurnsEndIn::TurnsEndIn(Flow* flow) : before_(std::exchange(ended_here.here, flow)) {}

TurnsEndIn::~TurnsEndIn() {
    ended_here.here = before_;
}

void Turn::end(Turn& turn) noexcept {
    Ended& ended = ended_here;
    (ended.first == nullptr ? ended.first : ended.last->next_ended_) = &turn;
    ended.last = &turn;
    if (ended.telling) return;
    ended.telling = true;
    while (Turn* const one = ended.first) {
        ended.first = one->next_ended_;
        TurnKeeper& keeper = one->keeper_;
        const uint64_t number = one->number_;
        TurnReference outer = std::move(one->outer_);
        delete one;
        keeper.over(number, std::move(outer), ended.here);
    }
    ended.telling = false;
}

}  // namespace heddle::streams
