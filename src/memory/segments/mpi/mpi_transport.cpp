#include "memory/segments/mpi/mpi_transport.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/signals_blocked.hpp"
#include "memory/segments/mpi/mpi_runtime.hpp"
#include "memory/segments/mpi/patience.hpp"

namespace heddle::memory {
namespace {

constexpr int kTag = 0;

class MpiTransport final : public Transport {
  public:
    MpiTransport() : all_(communicator_of_servers().get()), here_(all_.ranks() - 1) {}
    /// Waits until all others go, too: what they have sent before is theirs to be received.
    ~MpiTransport() override {
        stop();
        for (Rank rank = 0; rank < all_.ranks(); ++rank)
            if (rank != all_.rank()) send(rank, {});
        for (Patience patience; mpi_is_running() && (here_ > 0 || !all_sent());) {
            if (!receive()) patience.nap();
        }
    }
    MpiTransport(const MpiTransport&) = delete;
    MpiTransport& operator=(const MpiTransport&) = delete;

    void start(Listener& listener) override {
        listener_ = &listener;
        const SignalsBlocked blocked;
        thread_ = std::thread([this] {
            for (Patience patience; !stopping_;) {
                if (receive())
                    patience.restart();
                else
                    patience.nap();
                (void)all_sent();
            }
        });
    }
    void stop() override {
        stopping_ = true;
        if (thread_.joinable()) thread_.join();
        listener_ = nullptr;
    }
    void send(Rank to, Packet packet) override {
        const std::lock_guard lock(mutex_);
        Sent& sent = on_their_way_.emplace_back(std::move(packet), MPI_REQUEST_NULL);
        const int code = MPI_Isend(sent.packet.data(), static_cast<int>(sent.packet.size()), MPI_BYTE,
                                   static_cast<int>(to), kTag, all_.get(), &sent.request);
        if (code != MPI_SUCCESS) on_their_way_.pop_back();  // MPI ends the program where a rank is gone
    }

  private:
    struct Sent {
        Packet packet;
        MPI_Request request;
    };

    /// False: there was nothing.
    bool receive() {
        int arrived = 0, size = 0;
        MPI_Message message;
        MPI_Status status;
        if (MPI_Improbe(MPI_ANY_SOURCE, kTag, all_.get(), &arrived, &message, &status) != MPI_SUCCESS ||
            arrived == 0)
            return false;
        MPI_Get_count(&status, MPI_BYTE, &size);
        received_.resize(static_cast<size_t>(size));
        if (MPI_Mrecv(received_.data(), size, MPI_BYTE, &message, &status) != MPI_SUCCESS) return true;
        const auto from = static_cast<Rank>(status.MPI_SOURCE);
        if (received_.empty()) --here_;
        if (listener_ == nullptr) return true;
        if (received_.empty())
            listener_->lost(from);
        else
            listener_->received(from, received_);
        return true;
    }
    bool all_sent() {
        const std::lock_guard lock(mutex_);
        int done = 1;
        while (!on_their_way_.empty()) {
            if (MPI_Test(&on_their_way_.front().request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
                done == 0)
                return false;
            on_their_way_.pop_front();
        }
        return true;
    }

    Communicator all_;
    Rank here_;  // how many others have not said that they go; of whoever receives
    Packet received_;
    Listener* listener_ = nullptr;
    std::mutex mutex_;
    std::deque<Sent> on_their_way_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport() {
    return std::make_unique<MpiTransport>();
}

}  // namespace heddle::memory
