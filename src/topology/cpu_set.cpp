#include "heddle/cpu_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <climits>
#include <cstring>

#include "base/steps.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

int parse_index(std::string_view text, std::string_view whole) {
    int value = -1;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || value < 0 || value >= CpuSet::kMaxCpus)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("CPU list '{}': '{}' is not a CPU number below {}; write it as 0-3,8", whole,
                                text, CpuSet::kMaxCpus));
    return value;
}

void check_index(int cpu) {
    if (cpu < 0 || cpu >= CpuSet::kMaxCpus)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("CPU {} is outside 0..{}", cpu, CpuSet::kMaxCpus - 1));
}

}  // namespace

CpuSet::CpuSet(std::initializer_list<int> cpus) {
    for (const int cpu : cpus) insert(cpu);
}

CpuSet CpuSet::range(int first, int last) {
    if (first < 0 || first > last || last > kMaxCpus)
        throw Error(ErrorCode::kInvalidArgument, fmt::format("CPU range {}..{} is not one", first, last));
    CpuSet set;
    for (int cpu = first; cpu < last; ++cpu) set.insert(cpu);
    return set;
}

CpuSet CpuSet::parse(std::string_view list) {
    CpuSet set;
    std::string_view rest = list;
    while (!rest.empty() && (rest.back() == '\n' || rest.back() == ' ')) rest.remove_suffix(1);
    if (rest.empty()) return set;
    while (true) {
        const size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view part = rest.substr(0, comma);
        const size_t dash = part.find('-');
        const int from = parse_index(part.substr(0, std::min(dash, part.size())), list);
        const int to = dash == std::string_view::npos ? from : parse_index(part.substr(dash + 1), list);
        if (to < from)
            throw Error(ErrorCode::kBadInput,
                        fmt::format("CPU list '{}': the range '{}' runs backwards", list, part));
        for (int cpu = from; cpu <= to; ++cpu) set.insert(cpu);
        if (comma == rest.size()) return set;
        rest.remove_prefix(comma + 1);
    }
}

CpuSet CpuSet::from_native(const cpu_set_t* native, size_t bytes) {
    CpuSet set;
    set.words_.resize((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    if (bytes > 0) std::memcpy(set.words_.data(), native, bytes);
    set.trim();
    return set;
}

void CpuSet::insert(int cpu) {
    check_index(cpu);
    const auto word = static_cast<size_t>(cpu / kWordBits);
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= uint64_t{1} << (cpu % kWordBits);
}

void CpuSet::erase(int cpu) {
    check_index(cpu);
    const auto word = static_cast<size_t>(cpu / kWordBits);
    if (word >= words_.size()) return;
    words_[word] &= ~(uint64_t{1} << (cpu % kWordBits));
    trim();
}

bool CpuSet::contains(int cpu) const noexcept {
    const auto word = static_cast<size_t>(cpu / kWordBits);
    return cpu >= 0 && word < words_.size() && (words_[word] >> (cpu % kWordBits) & 1) != 0;
}

bool CpuSet::contains(const CpuSet& other) const noexcept {
    HEDDLE_STEPS(1);
    for (size_t i = 0; i < other.words_.size(); ++i)
        if ((other.words_[i] & ~(i < words_.size() ? words_[i] : 0)) != 0) return false;
    return true;
}

bool CpuSet::intersects(const CpuSet& other) const noexcept {
    HEDDLE_STEPS(1);
    for (size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
        if ((words_[i] & other.words_[i]) != 0) return true;
    return false;
}

int CpuSet::count() const noexcept {
    HEDDLE_STEPS(1);
    int total = 0;
    for (const uint64_t word : words_) total += std::popcount(word);
    return total;
}

bool CpuSet::empty() const noexcept {
    return words_.empty();
}

int CpuSet::next(int cpu) const noexcept {
    HEDDLE_STEPS(1);
    const int from = cpu + 1;
    auto word = static_cast<size_t>(from / kWordBits);
    if (word >= words_.size()) return -1;
    uint64_t bits = words_[word] & (~uint64_t{0} << (from % kWordBits));
    while (bits == 0) {
        if (++word >= words_.size()) return -1;
        bits = words_[word];
    }
    return static_cast<int>(word) * kWordBits + std::countr_zero(bits);
}

int CpuSet::last() const noexcept {
    if (words_.empty()) return -1;
    return static_cast<int>(words_.size()) * kWordBits - 1 - std::countl_zero(words_.back());
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
    HEDDLE_STEPS(1);
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
    words_.resize(std::min(words_.size(), other.words_.size()));
    HEDDLE_STEPS(1);
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    trim();
    return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
    HEDDLE_STEPS(1);
    for (size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i) words_[i] &= ~other.words_[i];
    trim();
    return *this;
}

bool operator==(const CpuSet& a, const CpuSet& b) noexcept {
    return a.words_ == b.words_;
}

std::string CpuSet::to_list() const {
    std::string text;
    for (int cpu = first(); cpu >= 0;) {
        int end = cpu;
        while (contains(end + 1)) ++end;
        if (!text.empty()) text += ',';
        text += cpu == end ? fmt::format("{}", cpu) : fmt::format("{}-{}", cpu, end);
        cpu = next(end);
    }
    return text;
}

std::vector<unsigned long> CpuSet::to_native(int cpus) const {
    static_assert(sizeof(unsigned long) == sizeof(uint64_t));
    std::vector<unsigned long> native(words_.begin(), words_.end());
    const auto wanted = static_cast<size_t>((std::max(cpus, 1) + kWordBits - 1) / kWordBits);
    if (native.size() < wanted) native.resize(wanted);
    return native;
}

void CpuSet::trim() noexcept {
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
}

}  // namespace heddle
