// The WorkRing as it is, under the explorer: what is popped was pushed whole, in order, and what is missing
// was counted.
#include "trace/work_ring.hpp"

#include "support/exploring.hpp"

namespace heddle::test {
namespace {

void one_notes_and_one_takes(Explorer& explorer) {
    constexpr int kPieces = 4;
    struct State {
        trace::WorkRing<2> ring;
        int64_t last = 0, taken = 0;

        void take(Explorer& explorer) {
            trace::NotedWork work;
            while (ring.pop(work)) {
                if (work.begin_ns <= last || work.end_ns != 10 * work.begin_ns)
                    explorer.fail("a piece is torn, old, or out of order");
                last = work.begin_ns;
                ++taken;
            }
        }
    };
    auto state = std::make_shared<State>();
    explorer.thread([state] {
        for (int64_t i = 1; i <= kPieces; ++i) {
            trace::NotedWork work;
            work.begin_ns = i;
            work.end_ns = 10 * i;
            state->ring.push(work);
        }
    });
    explorer.thread([state, &explorer] { state->take(explorer); });
    explorer.finally([state, &explorer] {
        state->take(explorer);
        if (state->taken + static_cast<int64_t>(state->ring.take_dropped()) != kPieces)
            explorer.fail("pieces are missing, and nobody counted them");
    });
}

/// Which is one at a time's to do.
void two_take_at_once(Explorer& explorer) {
    struct State {
        trace::WorkRing<2> ring;
        std::atomic<int> taken{0};

        void take() {
            for (trace::NotedWork work; ring.pop(work);) ++taken;
        }
    };
    auto state = std::make_shared<State>();
    state->ring.push({});
    state->ring.push({});
    for (int i = 0; i < 2; ++i) explorer.thread([state] { state->take(); });
    explorer.finally([state, &explorer] {
        if (state->taken != 2) explorer.fail("a piece was taken twice");
    });
}

TEST(ExploredWorkRing, GivesWholePiecesInOrder) {
    expect_holds(one_notes_and_one_takes);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(one_notes_and_one_takes, fault);
    expect_found(two_take_at_once, Fault::kNone);
}

}  // namespace
}  // namespace heddle::test
