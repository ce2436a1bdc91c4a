// Id: an integer that cannot be mistaken for another kind of integer.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace heddle {

template <class Tag>
struct Id {
    uint32_t value = 0;
    friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace heddle

template <class Tag>
struct std::hash<heddle::Id<Tag>> {
    size_t operator()(heddle::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.value); }
};
