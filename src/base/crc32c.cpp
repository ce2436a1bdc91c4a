#include "base/crc32c.hpp"

#include <boost/crc.hpp>
#include <cstring>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace heddle {
namespace {

#if defined(__x86_64__)
constexpr bool kKnown = true;
bool has_instruction() {
    static const bool has = __builtin_cpu_supports("sse4.2") != 0;
    return has;
}
#define HEDDLE_WITH_INSTRUCTION __attribute__((target("sse4.2")))
HEDDLE_WITH_INSTRUCTION uint32_t next_word(uint32_t crc, uint64_t word) {
    return static_cast<uint32_t>(__builtin_ia32_crc32di(crc, word));
}
HEDDLE_WITH_INSTRUCTION uint32_t next_byte(uint32_t crc, uint8_t byte) {
    return __builtin_ia32_crc32qi(crc, byte);
}
#elif defined(__aarch64__)
constexpr bool kKnown = true;
bool has_instruction() {
    static const bool has = (::getauxval(AT_HWCAP) & (1UL << 7u)) != 0;  // HWCAP_CRC32
    return has;
}
#define HEDDLE_WITH_INSTRUCTION
uint32_t next_word(uint32_t crc, uint64_t word) {
    asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}
uint32_t next_byte(uint32_t crc, uint8_t byte) {
    asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
    return crc;
}
#else
constexpr bool kKnown = false;
bool has_instruction() {
    return false;
}
#define HEDDLE_WITH_INSTRUCTION
uint32_t next_word(uint32_t crc, uint64_t) {
    return crc;
}
uint32_t next_byte(uint32_t crc, uint8_t) {
    return crc;
}
#endif

HEDDLE_WITH_INSTRUCTION uint32_t by_instruction(std::span<const std::byte> content) {
    uint32_t crc = ~uint32_t{0};
    const std::byte* at = content.data();
    size_t left = content.size();
    for (; left >= sizeof(uint64_t); at += sizeof(uint64_t), left -= sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, at, sizeof word);
        crc = next_word(crc, word);
    }
    for (; left > 0; ++at, --left) crc = next_byte(crc, static_cast<uint8_t>(*at));
    return ~crc;
}

}  // namespace

uint32_t crc32c_by_table(std::span<const std::byte> content) {
    boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
    crc.process_bytes(content.data(), content.size());
    return crc.checksum();
}

uint32_t crc32c(std::span<const std::byte> content) {
    return kKnown && has_instruction() ? by_instruction(content) : crc32c_by_table(content);
}

}  // namespace heddle
