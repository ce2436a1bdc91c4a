// Every interleaving of the hand-over protocol (docs/HANDOVER.md) on a small model: one CPU, three clients of
// one user and the arbiter, whose steps are single reads and writes of shared words. Clients may crash and be
// fenced in the middle of anything. Never do two use the CPU, and from every state it can be found again.
//
// The same explorer must find the fault in each of the mutants, which leave out one rule each.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

namespace heddle {
namespace {

enum class Mutant {
    kNone,
    kLenderBeforeRelease,  // the taker looks at its lender word before the release word, and not after
    kReadBeforeClosing,    // the arbiter reads the release word before it closes the lender words
    kNoReplayCheck,        // a hand-over counts as often as it is read
    kLastNamedOnly,        // the arbiter honours only the successor that it named last
    kPlainReclaim,         // the lender takes back without a compare-and-swap
    kPlainTake,            // the arbiter takes what is lent without one
};

constexpr int kClients = 3;
constexpr uint8_t kNoClient = 0, kLent = 4, kTakenBack = 5;  // clients are 1..3

struct Word {
    uint8_t generation = 0, who = kNoClient;
    friend bool operator==(const Word&, const Word&) = default;
};

enum Belief : uint8_t { kAbsent, kHeld, kTaken, kLending, kLeaving, kDead };
enum Step : uint8_t { kIdle, kReleasing, kTaking, kMatched, kObeying, kReclaiming };
enum ArbiterStep : uint8_t { kThinking, kNaming, kClosed, kRead, kShowing, kStoring };

struct Client {
    Word successor, lender;  // its grant page
    bool mask = false;       // its grant page: it may use the CPU
    Word release;            // its client page
    Belief belief = kAbsent;
    bool on = false;      // its threads are on the CPU
    bool fenced = false;  // its threads are kept off the CPU until it looks at its grant
    Step step = kIdle;
    Word read;  // what the step under way has read
    bool denied = false;
    uint8_t taken = 0;  // the generation of the hand-over that it took
};

struct State {
    std::array<Client, kClients> clients;
    // The arbiter's ledger.
    uint8_t holder = kNoClient;
    uint8_t generation = 0;
    uint8_t honoured = 0;  // a bit a client
    uint8_t named = kNoClient;
    bool leaving = false;
    // The arbiter's step under way.
    ArbiterStep step = kThinking;
    uint8_t arg = 0;         // of kNaming: whom; of kShowing: the holder before
    bool grants_on = false;  // of kClosed: what is not released is taken away (a fence, a death)
    Word read;
    uint8_t ended = 0;                // whose lender words are to be cleared
    uint8_t crashes = 0, fences = 0;  // that may still happen

    [[nodiscard]] std::string key() const {
        std::string bytes;
        const auto put = [&](uint8_t a, uint8_t b = 0) { bytes.push_back(static_cast<char>(a << 4 | b)); };
        for (const Client& c : clients) {
            for (const Word& word : {c.successor, c.lender, c.release, c.read})
                put(word.generation, word.who);
            put(c.belief, c.step);
            put(static_cast<uint8_t>(c.mask | c.on << 1 | c.denied << 2 | c.fenced << 3), c.taken);
        }
        put(holder, generation);
        put(honoured, named);
        put(static_cast<uint8_t>(leaving | grants_on << 1), step);
        put(arg, ended);
        put(read.generation, read.who);
        put(crashes, fences);
        return bytes;
    }
};

class Explorer {
  public:
    Explorer(Mutant mutant, int crashes, int fences, int generations)
        : mutant_(mutant), most_generations_(generations) {
        start_.crashes = static_cast<uint8_t>(crashes);
        start_.fences = static_cast<uint8_t>(fences);
    }

    /// What went wrong, or "".
    std::string explore() {
        visit(start_);
        for (at_ = 0; at_ < states_.size() && broken_.empty(); ++at_) {
            const State state = states_[at_].first;
            successors(state);
            if (!broken_.empty()) break;
            if (broken_ = stays_found(state); !broken_.empty()) broken_ += history(at_);
        }
        return broken_;
    }
    [[nodiscard]] size_t states() const { return seen_.size(); }

  private:
    void visit(const State& state) {
        if (!seen_.insert(state.key()).second) return;
        int on = 0;
        for (const Client& c : state.clients) on += c.on;
        states_.emplace_back(state, at_);
        if (on > 1 && broken_.empty()) broken_ = "two clients are on the CPU" + history(states_.size() - 1);
    }

    /// How the explorer came to a state, in words short enough for a failure's message.
    [[nodiscard]] std::string history(size_t index) const {
        std::vector<std::string> lines;
        for (;; index = states_[index].second) {
            const State& s = states_[index].first;
            std::ostringstream line;
            line << "\n  ledger " << int{s.holder} << '/' << int{s.generation}
                 << (s.leaving ? " leaving" : "") << " honours " << int{s.honoured} << " step "
                 << int{s.step};
            for (const Client& c : s.clients) {
                line << " | "
                     << "AHTlLD"[c.belief] << (c.on ? "*" : " ") << "step " << int{c.step} << " mask "
                     << c.mask;
                for (const Word& word : {c.successor, c.lender, c.release})
                    line << ' ' << int{word.generation} << ',' << int{word.who};
            }
            lines.push_back(line.str());
            if (index == 0) break;
        }
        std::string text;
        for (auto line = lines.rbegin(); line != lines.rend(); ++line) text += *line;
        return text;
    }

    /// Every step that somebody could take next.
    void successors(const State& s) {
        for (uint8_t id = 1; id <= kClients; ++id) {
            client_steps(s, id);
            State next = s;
            if (next.crashes > 0 && next.clients[id - 1].belief != kDead) {
                --next.crashes;
                crash(next, id);
                visit(next);
            }
        }
        arbiter_steps(s);
    }

    static void crash(State& s, uint8_t id) {
        Client& c = s.clients[id - 1];
        c.belief = kDead;
        c.on = false;
        c.step = kIdle;
    }

    void client_steps(const State& s, uint8_t id) {
        const Client& now = s.clients[id - 1];
        if (now.belief == kDead) return;
        State next = s;
        Client& c = next.clients[id - 1];
        switch (now.step) {
            case kIdle:
                if (now.belief == kHeld || now.belief == kLeaving) {  // lend, or leave what was asked back
                    c.on = false;
                    c.read = c.successor;
                    c.step = kReleasing;
                    visit(next);
                }
                next = s;
                if (now.belief == kLending) {
                    c.step = kReclaiming;
                    c.read = c.release;
                    visit(next);
                }
                next = s;
                if (now.belief == kAbsent && now.lender.who != kNoClient &&
                    (now.lender.generation > now.successor.generation || mutant_ == Mutant::kNoReplayCheck)) {
                    c.read = c.lender;
                    c.step = kTaking;
                    visit(next);
                }
                next = s;
                // Two reads that others may come between only where the first one counts.
                c.denied = now.belief == kTaken && now.lender.generation != now.taken;
                if (now.belief == kTaken)
                    c.step = kObeying;
                else
                    obey(c);
                visit(next);
                break;
            case kReleasing:
                c.release = {c.read.generation, c.read.who != kNoClient ? c.read.who : kLent};
                c.belief = c.read.who != kNoClient || c.belief == kLeaving ? kAbsent : kLending;
                c.step = kIdle;
                c.read = {};
                visit(next);
                break;
            case kReclaiming:
                if (mutant_ == Mutant::kPlainReclaim || now.release.who == kLent) {
                    c.release.who = kNoClient;
                    c.belief = kHeld;
                    c.on = !c.fenced;
                } else {
                    c.belief = kAbsent;
                }
                c.step = kIdle;
                c.read = {};
                visit(next);
                break;
            case kTaking: {
                const Word& release = s.clients[now.read.who - 1].release;
                const bool mine = release == Word{now.read.generation, id};
                c.step = mine ? kMatched : kIdle;
                if (!mine) c.read = {};
                visit(next);
                break;
            }
            case kMatched:
                if (now.lender == now.read || mutant_ == Mutant::kLenderBeforeRelease) {
                    c.belief = kTaken;
                    c.on = true;
                    c.taken = now.read.generation;
                }
                c.step = kIdle;
                c.read = {};
                visit(next);
                break;
            case kObeying:
                obey(c);
                visit(next);
                break;
        }
    }

    static void obey(Client& c) {
        const bool released = c.release.who != kNoClient && c.release.generation == c.successor.generation;
        if (c.mask) {
            if (!released) {
                c.belief = kHeld;
                c.on = true;
            }
        } else if (c.belief == kHeld || (c.belief == kTaken && c.denied)) {
            c.belief = kLeaving;
        } else if (c.belief == kLending) {
            c.belief = kAbsent;
        }
        c.denied = c.fenced = false;
        c.step = kIdle;
    }

    /// What the arbiter makes of the release word of its holder: whose the CPU is then. The holder itself
    /// where nothing was released.
    uint8_t heir(const State& s, const Word& release) const {
        if (release.generation != s.generation || release.who == kNoClient || release.who > kClients)
            return s.holder;
        const bool honoured =
            mutant_ == Mutant::kLastNamedOnly ? s.named == release.who : (s.honoured >> release.who & 1) != 0;
        if (!honoured) return s.holder;
        return s.clients[release.who - 1].belief == kDead ? kNoClient : release.who;
    }

    static void move_to(State& s, uint8_t to) {
        s.arg = s.holder;
        s.ended |= s.honoured;
        s.holder = to;
        s.leaving = false;
        s.honoured = 0;
        s.named = kNoClient;
        s.step = kShowing;
        if (to == kNoClient) return;
        ++s.generation;
        s.clients[to - 1].successor = {s.generation, kNoClient};
    }

    void arbiter_steps(const State& s) {
        State next = s;
        switch (s.step) {
            case kThinking:
                think(s);
                return;
            case kNaming:  // the lender word is written; now the successor word
                next.clients[s.holder - 1].successor = {s.generation, s.arg};
                next.step = kThinking;
                next.arg = 0;
                break;
            case kClosed: {  // nobody can take it any more; now the release word
                Word& release = next.clients[s.holder - 1].release;
                next.read = release;
                // With a compare-and-swap, so that its holder does not take it back.
                if (release == Word{s.generation, kLent}) release.who = kTakenBack;
                if (mutant_ == Mutant::kReadBeforeClosing)
                    next.step = kRead;
                else
                    decide(next);
                break;
            }
            case kRead:  // of kReadBeforeClosing
                close(next);
                decide(next);
                break;
            case kStoring:  // of kPlainTake
                next.clients[s.holder - 1].release.who = kTakenBack;
                move_to(next, kNoClient);
                break;
            case kShowing:
                if (s.arg != kNoClient) next.clients[s.arg - 1].mask = false;
                if (s.holder != kNoClient) next.clients[s.holder - 1].mask = true;
                next.arg = 0;
                next.step = kThinking;
                break;
        }
        visit(next);
    }

    static void close(State& s) {
        for (uint8_t id = 1; id <= kClients; ++id)
            if ((s.honoured >> id & 1) != 0) s.clients[id - 1].lender = {s.generation, kNoClient};
    }

    void decide(State& s) const {
        const uint8_t to = heir(s, s.read);
        s.read = {};
        s.step = kThinking;
        s.grants_on = false;
        move_to(s, to == s.holder ? kNoClient : to);
    }

    /// Shows those who were named for a grant that has ended that it has. It may come late.
    static void clear_ended(State& s) {
        for (uint8_t id = 1; id <= kClients; ++id)
            if ((s.ended >> id & 1) != 0 && (s.honoured >> id & 1) == 0) s.clients[id - 1].lender = {};
        s.ended = 0;
    }

    void think(const State& s) {
        State next = s;
        if (s.ended != 0) {
            clear_ended(next);
            visit(next);
            next = s;
        }
        if (s.holder == kNoClient) {
            if (s.generation >= most_generations_) return;
            // The first grant is the first client's: the others are the same with other names.
            const uint8_t last = s.generation == 0 ? 1 : kClients;
            for (uint8_t id = 1; id <= last; ++id) {
                if (s.clients[id - 1].belief == kDead) continue;
                next = s;
                move_to(next, id);
                visit(next);
            }
            return;
        }
        const Client& holder = s.clients[s.holder - 1];
        const Word release = holder.release;
        if (s.generation < most_generations_) {
            for (uint8_t id = 1; id <= kClients; ++id) {  // name, or name another
                if (id == s.holder || id == s.named || s.clients[id - 1].belief == kDead) continue;
                next = s;
                next.honoured = static_cast<uint8_t>(s.honoured | 1 << id);
                next.named = id;
                next.arg = id;
                next.clients[id - 1].lender = {s.generation, s.holder};
                next.step = kNaming;
                visit(next);
            }
        }
        if (s.named != kNoClient) {  // nobody wants it any more
            next = s;
            next.named = kNoClient;
            next.arg = kNoClient;
            next.step = kNaming;
            visit(next);
        }
        if (!s.leaving && holder.belief != kDead) {
            next = s;
            next.leaving = true;
            next.clients[s.holder - 1].mask = false;
            visit(next);
        }
        if (const uint8_t to = heir(s, release); to != s.holder) {  // it hears of the hand-over
            next = s;
            move_to(next, to);
            visit(next);
        }
        if (release == Word{s.generation, kLent}) {
            next = s;
            if (mutant_ == Mutant::kPlainTake) {
                next.step = kStoring;
            } else {
                next.clients[s.holder - 1].release.who = kTakenBack;
                move_to(next, kNoClient);
            }
            visit(next);
        }
        // The grant ends: the holder died, said that it is off the CPU, or is fenced.
        const bool left = s.leaving && holder.step == kIdle && holder.belief == kAbsent;
        if (holder.belief == kDead || left) {
            next = s;
            end(next);
            visit(next);
        } else if (s.leaving && s.fences > 0 && s.ended == 0) {  // a fence comes last of what is shown
            next = s;
            --next.fences;
            next.clients[s.holder - 1].on = false;  // it goes on elsewhere, and knows nothing
            next.clients[s.holder - 1].fenced = true;
            end(next);
            visit(next);
        }
    }

    void end(State& s) const {
        if (mutant_ != Mutant::kReadBeforeClosing) close(s);
        s.step = kClosed;
    }

    /// When everybody finishes what is under way and the arbiter hears all there is to hear, the CPU is free
    /// or its holder is on it, or has lent it.
    std::string stays_found(State s) const {
        for (int round = 0; round < 4; ++round) {
            for (int i = 0; i < 4 && s.step != kThinking; ++i) finish_arbiter(s);
            clear_ended(s);
            for (uint8_t id = 1; id <= kClients; ++id) finish_client(s, id);
            if (s.holder == kNoClient) continue;
            const Client& holder = s.clients[s.holder - 1];
            if (const uint8_t to = heir(s, holder.release); to != s.holder)
                move_to(s, to);
            else if (holder.belief == kDead || (s.leaving && !holder.on))
                move_to(s, kNoClient);
        }
        if (s.holder == kNoClient) return "";
        const Client& holder = s.clients[s.holder - 1];
        if (holder.on || holder.release == Word{s.generation, kLent} || holder.step != kIdle) return "";
        return "the CPU is lost: its holder is not on it and has not released it";
    }
    void finish_arbiter(State& s) const {
        switch (s.step) {
            case kNaming:
                s.clients[s.holder - 1].successor = {s.generation, s.arg};
                s.step = kThinking;
                break;
            case kClosed:
            case kRead:
                s.read = s.clients[s.holder - 1].release;
                decide(s);
                break;
            case kShowing:
                if (s.arg != kNoClient) s.clients[s.arg - 1].mask = false;
                if (s.holder != kNoClient) s.clients[s.holder - 1].mask = true;
                s.step = kThinking;
                break;
            case kStoring:
            case kThinking:
                break;
        }
        if (s.step == kThinking) s.arg = 0;
    }
    static void finish_client(State& s, uint8_t id) {
        Client& c = s.clients[id - 1];
        if (c.belief == kDead) return;
        if (c.step == kReleasing) {
            c.release = {c.read.generation, c.read.who != kNoClient ? c.read.who : kLent};
            c.belief = c.read.who != kNoClient || c.belief == kLeaving ? kAbsent : kLending;
        }
        c.step = kIdle;
        c.denied = c.belief == kTaken && c.lender.generation != c.taken;
        obey(c);
        if (c.belief == kLeaving) {
            c.on = false;
            c.release = {c.successor.generation, c.successor.who != kNoClient ? c.successor.who : kLent};
            c.belief = kAbsent;
        }
    }

    Mutant mutant_;
    int most_generations_;
    State start_;
    std::unordered_set<std::string> seen_;
    std::vector<std::pair<State, size_t>> states_;  // with where each came from
    size_t at_ = 0;
    std::string broken_;
};

/// TEST_GENERATIONS=3 explores crashes and fences among three grants in a row too, which takes a minute.
int generations_with_faults() {
    const char* text = std::getenv("TEST_GENERATIONS");
    return text == nullptr ? 2 : std::atoi(text);
}

class HandoverModel : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(HandoverModel, NeverHasTwoUsersAndNeverLosesTheCpu) {
    const auto [crashes, fences] = GetParam();
    Explorer explorer(Mutant::kNone, crashes, fences, crashes + fences > 0 ? generations_with_faults() : 3);
    EXPECT_EQ(explorer.explore(), "");
    EXPECT_GT(explorer.states(), 5000U);
}
INSTANTIATE_TEST_SUITE_P(CrashesAndFences, HandoverModel,
                         testing::Values(std::pair(0, 0), std::pair(1, 0), std::pair(0, 1)));

class HandoverMutants : public testing::TestWithParam<Mutant> {};

TEST_P(HandoverMutants, AreCaught) {
    Explorer fenced(GetParam(), 0, 1, 2);  // the smaller one first
    if (!fenced.explore().empty()) return;
    Explorer calm(GetParam(), 0, 0, 3);
    EXPECT_NE(calm.explore(), "") << "nothing went wrong in " << calm.states() << " states";
}
INSTANTIATE_TEST_SUITE_P(Rules, HandoverMutants,
                         testing::Values(Mutant::kLenderBeforeRelease, Mutant::kReadBeforeClosing,
                                         Mutant::kNoReplayCheck, Mutant::kLastNamedOnly,
                                         Mutant::kPlainReclaim, Mutant::kPlainTake));

}  // namespace
}  // namespace heddle
