#define _GNU_SOURCE
#include "run_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu_list.h"
#include "base/edit_distance.h"
#include "base/settings_table.h"

enum { kUsage = 2, kMostCpus = 1024, kMostWeight = 1000 };

static const char kRunHelp[] =
    "Usage: heddle run [OPTIONS] -- COMMAND [ARGUMENT...]\n"
    "Runs an unmodified program under management: its threads follow the CPUs that the\n"
    "arbiter gives it. The exit code is the program's; 127: not found, 126: cannot be executed.\n"
    "\n"
    "  --min N       CPUs that it and what it starts want at least, together\n"
    "  --max N       CPUs that it wants at most\n"
    "  --weight W    weight of its demand among others, 1 to 1000 (default 1)\n"
    "  --own CPUS    CPUs that are its own, as 0-3,8, under an arbiter of the policy 'owned':\n"
    "                it lends those that it does not need and always wins them back; what it\n"
    "                starts has them, too\n"
    "  --name TEXT   its name in heddle status (default: the program's)\n"
    "  --mode MODE   auto: as the program allows; threads: only numbers of threads;\n"
    "                mask: bind all its threads to its CPUs, however many they are\n"
    "  --require     without an arbiter do not run it: exit code 69\n"
    "  --help        this text\n"
    "\n"
    "HEDDLE_ARBITER=off or a socket's path says where the arbiter is; see heddle(1).\n";

struct option {
    const char* flag;
    const char* variable;
    long low, high; /* of a number; 0, 0 for text */
};
static const struct option kOptions[] = {
    {"--min", "HEDDLE_MIN", 0, kMostCpus},
    {"--max", "HEDDLE_MAX", 0, kMostCpus},
    {"--weight", "HEDDLE_WEIGHT", 1, kMostWeight},
    {"--own", "HEDDLE_OWN", 0, 0},
    {"--name", "HEDDLE_NAME", 0, 0},
    {"--mode", "HEDDLE_MODE", 0, 0},
};
enum { kOptionCount = sizeof kOptions / sizeof *kOptions };

/* Finds the nearest of the words that it is shown to one that is none of them. */
struct nearest {
    const char* word;
    size_t length;
    const char* found;
    size_t distance;
};
static void look_at(struct nearest* nearest, const char* known) {
    const size_t distance = heddle_edit_distance(known, strlen(known), nearest->word, nearest->length);
    if (nearest->found != NULL && distance >= nearest->distance) return;
    nearest->found = known;
    nearest->distance = distance;
}

static int usage(const char* format, const char* detail) {
    fprintf(stderr, "heddle run: ");
    fprintf(stderr, format, detail);
    fprintf(stderr, "; heddle run --help tells what there is\n");
    return kUsage;
}

/* A name that is not in the table is a misspelling, most likely. */
static void warn_of_unknown_settings(void) {
    static const char* const known[] = {
#define SETTING(name, values, meaning) name,
        HEDDLE_SETTINGS(SETTING)
#undef SETTING
    };
    static const char prefix[] = "HEDDLE_";
    for (char** entry = environ; *entry != NULL; ++entry) {
        if (strncmp(*entry, prefix, sizeof prefix - 1) != 0) continue;
        const size_t length = strcspn(*entry, "=");
        struct nearest meant = {.word = *entry, .length = length};
        for (size_t i = 0; i < sizeof known / sizeof *known; ++i) look_at(&meant, known[i]);
        if (meant.distance == 0) continue;
        const bool misspelt = heddle_is_misspelling(length - (sizeof prefix - 1), meant.distance);
        fprintf(stderr, "heddle run: %.*s is not a variable of heddle and is ignored; %s%s%s\n", (int)length,
                *entry, misspelt ? "did you mean " : "heddle(1) lists those that are",
                misspelt ? meant.found : "", misspelt ? "?" : "");
    }
}

static int unknown_option(const char* word) {
    struct nearest meant = {.word = word, .length = strcspn(word, "=")};
    for (size_t i = 0; i < kOptionCount; ++i) look_at(&meant, kOptions[i].flag);
    look_at(&meant, "--require");
    look_at(&meant, "--help");
    if (!heddle_is_misspelling(meant.length - strspn(word, "-"), meant.distance))
        return usage("unknown option %s", word);
    char detail[160];
    snprintf(detail, sizeof detail, "unknown option %.60s (did you mean %s?)", word, meant.found);
    return usage("%s", detail);
}

static bool is_number(const char* text, long low, long high) {
    char* end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && value >= low && value <= high;
}

/* The option that a word names, with its value where the word holds it ("--max=4"). */
static const struct option* find_option(const char* word, const char** value) {
    *value = NULL;
    for (size_t i = 0; i < kOptionCount; ++i) {
        const size_t length = strlen(kOptions[i].flag);
        if (strncmp(word, kOptions[i].flag, length) != 0) continue;
        if (word[length] == '=') *value = word + length + 1;
        if (word[length] == '=' || word[length] == '\0') return &kOptions[i];
    }
    return NULL;
}

static int check_settings(void) {
    for (size_t i = 0; i < kOptionCount; ++i) {
        const struct option* option = &kOptions[i];
        const char* value = getenv(option->variable);
        if (value == NULL || *value == '\0' || option->high == 0 ||
            is_number(value, option->low, option->high))
            continue;
        char detail[160];
        snprintf(detail, sizeof detail, "%s (%s) has to be a number from %ld to %ld, not '%.40s'",
                 option->flag, option->variable, option->low, option->high, value);
        return usage("%s", detail);
    }
    const char* mode = getenv("HEDDLE_MODE");
    if (mode != NULL && *mode != '\0' && strcmp(mode, "auto") != 0 && strcmp(mode, "threads") != 0 &&
        strcmp(mode, "mask") != 0)
        return usage("--mode (HEDDLE_MODE) has to be auto, threads or mask, not '%s'", mode);
    const char* own = getenv("HEDDLE_OWN");
    uint64_t cpus[kMostCpus / 64] = {0};
    if (own != NULL && !heddle_read_cpu_list(own, cpus, kMostCpus))
        return usage("--own (HEDDLE_OWN) has to be a list of CPUs below 1024, as 0-3,8, not '%s'", own);
    const char* min = getenv("HEDDLE_MIN");
    const char* max = getenv("HEDDLE_MAX");
    if (min != NULL && max != NULL && atol(max) != 0 && atol(min) > atol(max))
        return usage("--min is above --max%s", "");
    return RUN_OPTIONS_OK;
}

int run_options(int count, char** words, int* command, bool* require) {
    warn_of_unknown_settings();
    int i = 0;
    for (; i < count && words[i][0] == '-'; ++i) {
        if (strcmp(words[i], "--") == 0) {
            ++i;
            break;
        }
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) {
            fputs(kRunHelp, stdout);
            return 0;
        }
        if (strcmp(words[i], "--require") == 0) {
            *require = true;
            continue;
        }
        const char* value = NULL;
        const struct option* option = find_option(words[i], &value);
        if (option == NULL) return unknown_option(words[i]);
        if (value == NULL) {
            if (i + 1 == count) return usage("%s needs a value", option->flag);
            value = words[++i];
        }
        setenv(option->variable, value, 1);
    }
    if (i >= count) return usage("no command was given%s", "");
    *command = i;
    return check_settings();
}
