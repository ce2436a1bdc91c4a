// What segments of vmem.hpp are made of, and how data are spread in them. Plain values; any thread.
//
// Of parameters of transports heddle uses how long to wait for the other ranks; the others are accepted,
// since programs name them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "heddle/compat/vmem/types.hpp"
#include "heddle/memory.hpp"

namespace vmem {
namespace detail {

template <class T, class... Others>
inline constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

class transport_params {
  public:
    transport_params() = default;
    explicit transport_params(std::chrono::duration<double> timeout, uint16_t port = 0)
        : timeout_s_(timeout.count()), port_(port) {}
    [[nodiscard]] double timeout_s() const { return timeout_s_; }
    [[nodiscard]] uint16_t port() const { return port_; }
    [[nodiscard]] std::optional<int> communicator() const { return {}; }

  private:
    double timeout_s_ = 30;
    uint16_t port_ = 0;
};

/// What HEDDLE_VMEM_SEGMENTS says, or else what was asked for.
[[nodiscard]] HEDDLE_API heddle::memory::SegmentDescription chosen(
    heddle::memory::SegmentDescription description);

/// How a user's data are spread, by a function as heddle::memory::Distribution.
template <class Description>
[[nodiscard]] heddle::memory::DataDescription data_description(const Description& description) {
    if constexpr (std::is_convertible_v<Description, heddle::memory::Distribution>)
        return {"the program's own", description};
    else
        return {Description::name()};
}

}  // namespace detail

namespace gaspi {
struct context {
    using params = detail::transport_params;
    static const char* kind() { return "gaspi"; }
};
struct communication_buffers {
    size_t size;
    size_t count;
    communication_buffers(size_t size_of_each, size_t how_many) : size(size_of_each), count(how_many) {}
};
struct equally_distributed_segment_description {
    using factory = context;
    equally_distributed_segment_description() = default;
    explicit equally_distributed_segment_description(communication_buffers const&) {}
    [[nodiscard]] heddle::memory::SegmentDescription native() const { return {context::kind()}; }
};
}  // namespace gaspi

namespace mpi {
/// With a communicator its processes are the ranks of the server, whatever nodes it is given.
class params : public detail::transport_params {
  public:
    using transport_params::transport_params;
    params() = default;
    /// By MPI_Comm_c2f(), or itself where mpi.h was included before.
    explicit params(int communicator) : communicator_(communicator) {}
#ifdef MPI_VERSION
    template <class Comm,
              std::enable_if_t<std::is_same_v<Comm, MPI_Comm> && !std::is_same_v<Comm, int>>* = nullptr>
    explicit params(Comm communicator) : communicator_(MPI_Comm_c2f(communicator)) {}
#endif
    [[nodiscard]] std::optional<int> communicator() const {
        return communicator_;
    }

  private:
    std::optional<int> communicator_;
};
struct context {
    using params = mpi::params;
    static const char* kind() { return "mpi"; }
};
struct equally_distributed_segment_description {
    using factory = context;
    [[nodiscard]] heddle::memory::SegmentDescription native() const { return {context::kind()}; }
};
}  // namespace mpi

namespace shm {
struct context {
    using params = detail::transport_params;
    static const char* kind() { return "shm"; }
};
struct equally_distributed_segment_description {
    using factory = context;
    [[nodiscard]] heddle::memory::SegmentDescription native() const { return {context::kind()}; }
};
}  // namespace shm

/// Files in a folder, as BeeGFS mounts one.
namespace beegfs {
struct context {
    using params = detail::transport_params;
    static const char* kind() { return "file"; }
};
class equally_distributed_segment_description {
  public:
    using factory = context;
    explicit equally_distributed_segment_description(std::string const& path) : path_(path) {}
    [[nodiscard]] heddle::memory::SegmentDescription native() const {
        return {context::kind(), {{"path", path_}}};
    }

  private:
    std::string path_;
};
using segment_description = equally_distributed_segment_description;
}  // namespace beegfs

struct equally_distributed_data {
    static const char* name() { return "equally_distributed"; }
};
/// All on the first rank, and on the next what did not fit there.
struct prefix_filled_data {
    static const char* name() { return "prefix_filled"; }
};

}  // namespace vmem
