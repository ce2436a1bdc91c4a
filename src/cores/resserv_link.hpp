// ResservLink: this process as a client of a resource server of S-Net, in the place of heddle's arbiter: the
// CPUs that it may use are those that were granted by the text protocol (resserv_words.hpp).
//
// Thread-safe. A thread of its own listens to the server and runs the callbacks, one at a time and without a
// lock. What the server grants beyond `allowed` goes back at once. As its other clients do, the process keeps
// what it was granted until that is revoked; where the server dies it keeps what it has, or has all of
// `allowed` where that is nothing: nobody would grant it any more.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "cores/arbiter_link.hpp"
#include "cores/resserv_words.hpp"

namespace heddle {

class ResservLink final : public ArbiterLink {
  public:
    /// `place` is PORT or HOST:PORT; the host is 127.0.0.1 where none is told. Returns when the server has
    /// told what there is. Throws kBadInput for a place that is none, kUnavailable where nobody listens there
    /// or answers within 10 s, or something else answers.
    ResservLink(const std::string& place, CpuSet allowed, Callbacks callbacks);
    /// Leaves: what it was granted is the server's again.
    ~ResservLink() override;

    [[nodiscard]] bool managed() const noexcept override { return managed_; }
    [[nodiscard]] std::string problem() const override { return ""; }
    [[nodiscard]] CpuSet held() const override;
    [[nodiscard]] bool holds(int cpu) const noexcept override;
    /// What is not needed is kept until it is revoked.
    [[nodiscard]] bool others_wait() const noexcept override { return false; }
    void set_demand(int cpus, bool soon = false) override;
    Lent lend(int cpu) override;
    [[nodiscard]] bool reclaim(int cpu) override;
    void released(int cpu) override;

  private:
    void set_up();
    [[nodiscard]] std::string wait_for(std::string_view word);
    void listen();
    void go_on_alone();
    void obey(const std::string& message);
    void say(const std::string& text) const noexcept;
    [[nodiscard]] int logical(int cpu) const noexcept;

    const std::string place_;
    const CpuSet allowed_;
    const Callbacks callbacks_;
    Descriptor socket_;
    resserv::Messages messages_;  // of its thread, or set_up() before that
    std::vector<int> procs_;      ///< by logical number; constant after set_up()
    std::atomic<bool> managed_{false};
    std::atomic<bool> leaves_{false};  ///< it hangs up itself
    mutable std::mutex mutex_;         // for all below
    CpuSet held_;
    int demand_ = 0;
    std::thread thread_;  // last: it uses the others
};

}  // namespace heddle
