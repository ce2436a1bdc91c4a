/* How far a word is from the one that was meant: Levenshtein's distance. C, because the launcher is. No
 * state; any thread. */
#ifndef HEDDLE_BASE_EDIT_DISTANCE_H
#define HEDDLE_BASE_EDIT_DISTANCE_H

#include <stdbool.h>
#include <stddef.h>

enum { HEDDLE_LONGEST_WORD = 63 };

/* How many characters to change, add or drop. Words count up to HEDDLE_LONGEST_WORD characters. */
static inline size_t heddle_edit_distance(const char* a, size_t a_length, const char* b, size_t b_length) {
    size_t row[HEDDLE_LONGEST_WORD + 1]; /* distances of what a has so far to each beginning of b */
    if (a_length > HEDDLE_LONGEST_WORD) a_length = HEDDLE_LONGEST_WORD;
    if (b_length > HEDDLE_LONGEST_WORD) b_length = HEDDLE_LONGEST_WORD;
    for (size_t j = 0; j <= b_length; ++j) row[j] = j;
    for (size_t i = 1; i <= a_length; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; ++j) {
            const size_t above = row[j];
            size_t least = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            if (above + 1 < least) least = above + 1;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            row[j] = least;
            diagonal = above;
        }
    }
    return row[b_length];
}

/* Is a word of so many characters, so far from a known one, that one misspelt? With about a third of it wrong
 * at the most: a letter of a short one, or two that changed places. */
static inline bool heddle_is_misspelling(size_t length, size_t distance) {
    return distance <= 1 + length / 3;
}

#endif
