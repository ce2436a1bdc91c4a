// The records that the clients of a kill campaign write: all cells of one are the same value, so that one
// that was put in part is seen.
#pragma once

#include <cstring>

#include "heddle/memory_types.hpp"

namespace heddle::test {

constexpr uint64_t kRecordCells = 700, kRecordBytes = kRecordCells * 8;
constexpr uint32_t kRecords = 12;

inline memory::GlobalRange record(memory::DataId data, uint32_t which) {
    return {data, {which * kRecordBytes, kRecordBytes}};
}
inline void write_record(std::byte* to, uint64_t value) {
    for (uint64_t cell = 0; cell < kRecordCells; ++cell) std::memcpy(to + 8 * cell, &value, 8);
}
inline bool is_whole(const std::byte* from) {
    for (uint64_t cell = 1; cell < kRecordCells; ++cell)
        if (std::memcmp(from, from + 8 * cell, 8) != 0) return false;
    return true;
}

}  // namespace heddle::test
