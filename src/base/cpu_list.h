/* A list of CPUs as text, "0-3,8", read into words of bits. C, because the launcher and what it loads into a
 * program are; C++ has CpuSet::parse, with the same grammar. No state; any thread. */
#ifndef HEDDLE_BASE_CPU_LIST_H
#define HEDDLE_BASE_CPU_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads decimal digits; moves `text` on. False where there are none, or the number is not below `limit`. */
static inline bool heddle_read_cpu(const char** text, size_t limit, size_t* cpu) {
    const char* digit = *text;
    size_t value = 0;
    for (; *digit >= '0' && *digit <= '9' && value < limit; ++digit)
        value = value * 10 + (size_t)(*digit - '0');
    const bool read = digit != *text && value < limit;
    *text = digit;
    *cpu = value;
    return read;
}

/* Sets the bits of the list's CPUs in `words`, which has room for `limit` bits. False where the text is no
 * such list, or names a CPU that is not below `limit`. "" is the empty list. */
static inline bool heddle_read_cpu_list(const char* text, uint64_t* words, size_t limit) {
    while (*text != '\0') {
        size_t first, last;
        if (!heddle_read_cpu(&text, limit, &first)) return false;
        last = first;
        if (*text == '-' && (++text, !heddle_read_cpu(&text, limit, &last))) return false;
        if (last < first) return false;
        for (size_t cpu = first; cpu <= last; ++cpu) words[cpu / 64] |= (uint64_t)1 << (cpu % 64);
        if (*text == ',' && text[1] != '\0')
            ++text;
        else if (*text != '\0')
            return false;
    }
    return true;
}

#endif
