// A flow that is paused in one thread and goes on in another, under the explorer: the switch tells of it by
// its hand-off, the other finds it in ResumedFlows. Whoever has it has all that it wrote, and its registers.
#include <array>

#include "engines/native/flow.hpp"
#include "support/exploring.hpp"

namespace heddle::test {
namespace {

class World {
  public:
    /// `favoured`: the thread that pauses is the one that woke flows last, and needs no turn for it.
    World(Explorer& explorer, bool favoured) : explorer_(explorer) {
        here_ = this;
        for (int i = 0; favoured && i < 2; ++i) {
            woken_.push(flow_, keys_[0]);
            (void)woken_.pop(keys_[0]);
        }
    }
    ~World() { cache_.give_back(stack_); }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    /// Runs the flow in the calling thread until it pauses or ends.
    void go_on(Flow& flow) {
        Fiber own;
        home_ = &own;
        Fiber::switch_to(own, flow.fiber);
    }
    Flow& wait_for_it() {
        while (true) {
            if (Flow* found = woken_.pop(keys_[1])) return *found;
            explorer_.yield();
        }
    }
    Flow& flow() { return flow_; }
    void expect_ended() {
        if (!ended_ || data_ != 2) explorer_.fail("it did not come to its end");
    }

  private:
    static void run(void*) { here_->body(); }
    void body() {
        const int on_its_stack = ++data_;
        Fiber::switch_to(flow_.fiber, *home_,
                         {[](void* world) noexcept {
                              auto& self = *static_cast<World*>(world);
                              self.woken_.push(self.flow_, self.keys_[0]);
                          },
                          this});
        if (on_its_stack != 1 || ++data_ != 2) explorer_.fail("what it had is not what it has");
        Fiber::exit_to(flow_.fiber, *home_,
                       {[](void* world) noexcept { static_cast<World*>(world)->ended_ = true; }, this});
    }

    static inline World* here_ = nullptr;
    Explorer& explorer_;
    alignas(64) std::array<std::byte, 64> nowhere_{};  // of the engine the address alone is used
    StackPool pool_;
    StackCache cache_{pool_};
    Stack& stack_ = cache_.take();
    Flow flow_{*reinterpret_cast<NativeEngine*>(nowhere_.data()), stack_, &World::run};
    ResumedFlows woken_{2};
    BiasedLock::Key keys_[2];
    Fiber* home_ = nullptr;
    int data_ = 0;
    bool ended_ = false;
};

template <bool favoured>
void a_flow_changes_threads(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer, favoured);
    explorer.thread([world] { world->go_on(world->flow()); });
    explorer.thread([world] {
        world->go_on(world->wait_for_it());
        world->expect_ended();
    });
}

TEST(ExploredHandoff, AFlowChangesThreads) {
    expect_holds(a_flow_changes_threads<false>);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(a_flow_changes_threads<false>, fault);
}

TEST(ExploredHandoff, AFlowLeavesTheThreadThatIsFavoured) {
    expect_holds(a_flow_changes_threads<true>);
    expect_found(a_flow_changes_threads<true>, Fault::kNoFences);
}

}  // namespace
}  // namespace heddle::test
