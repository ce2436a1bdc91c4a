// What a program asks for itself and all that it starts (reservations.cpp). A value.
#pragma once

#include "base/id.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle {

/// Clients that share a reservation. Who reserves nothing has a job of its own.
struct JobTag;
using JobId = Id<JobTag>;

struct Reservation {
    int min = 0;        ///< CPUs that it has whatever others want
    CpuSet owned = {};  ///< CPUs that are its own; empty under a policy without owners
    friend bool operator==(const Reservation&, const Reservation&) = default;
};

}  // namespace heddle
