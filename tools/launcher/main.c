/* heddle, the command itself: a static C program, because `heddle run` must cost next to nothing. It starts
 * programs; every other subcommand is heddle-tool's, which it becomes.
 *
 * `heddle run` connects to the arbiter or starts one, puts libheddle-launch.so before the program's libraries
 * and becomes the program: same process, so exit code, signals and terminal are the program's own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arbiter_start.h"
#include "cores/arbiter_path.h"
#include "program_check.h"

enum {
    kUsage = 2,
    kServiceAbsent = 69,
    kCannotExecute = 126,
    kNotFound = 127,
    kMostCpus = 1024,
    kMostWeight = 1000
};

static const char kRunHelp[] =
    "Usage: heddle run [OPTIONS] -- COMMAND [ARGUMENT...]\n"
    "Runs an unmodified program under management: its threads follow the CPUs that the\n"
    "arbiter gives it. The exit code is the program's; 127: not found, 126: cannot be executed.\n"
    "\n"
    "  --min N       CPUs that it wants at least\n"
    "  --max N       CPUs that it wants at most\n"
    "  --weight W    weight of its demand among others, 1 to 1000 (default 1)\n"
    "  --name TEXT   its name in heddle status (default: the program's)\n"
    "  --mode MODE   auto: as the program allows; threads: only numbers of threads;\n"
    "                mask: bind all its threads to its CPUs, however many they are\n"
    "  --require     without an arbiter do not run it: exit code 69\n"
    "  --help        this text\n"
    "\n"
    "HEDDLE_ARBITER=off or a socket's path says where the arbiter is; see heddle(1).\n";

static int usage(const char* format, const char* detail) {
    fprintf(stderr, "heddle run: ");
    fprintf(stderr, format, detail);
    fprintf(stderr, "\nRun heddle run --help for what there is.\n");
    return kUsage;
}

static bool is_number(const char* text, long low, long high) {
    char* end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && value >= low && value <= high;
}

struct option {
    const char* flag;
    const char* variable;
    long low, high; /* of a number; 0, 0 for text */
};
static const struct option kOptions[] = {
    {"--min", "HEDDLE_MIN", 0, kMostCpus},
    {"--max", "HEDDLE_MAX", 0, kMostCpus},
    {"--weight", "HEDDLE_WEIGHT", 1, kMostWeight},
    {"--name", "HEDDLE_NAME", 0, 0},
    {"--mode", "HEDDLE_MODE", 0, 0},
};

/* Reads the options into the environment. Returns 0 and the index of the command, or an exit code. */
static int parse(int count, char** words, int* command, bool* require) {
    int i = 0;
    for (; i < count && words[i][0] == '-'; ++i) {
        if (strcmp(words[i], "--") == 0) {
            ++i;
            break;
        }
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) {
            fputs(kRunHelp, stdout);
            exit(0);
        }
        if (strcmp(words[i], "--require") == 0) {
            *require = true;
            continue;
        }
        const struct option* option = NULL;
        const char* value = NULL;
        for (size_t k = 0; k < sizeof kOptions / sizeof *kOptions && option == NULL; ++k) {
            const size_t length = strlen(kOptions[k].flag);
            if (strncmp(words[i], kOptions[k].flag, length) != 0) continue;
            if (words[i][length] == '=') value = words[i] + length + 1;
            if (words[i][length] == '=' || words[i][length] == '\0') option = &kOptions[k];
        }
        if (option == NULL) return usage("unknown option %s", words[i]);
        if (value == NULL) {
            if (i + 1 == count) return usage("%s needs a value", option->flag);
            value = words[++i];
        }
        if (option->high != 0 && !is_number(value, option->low, option->high)) {
            char detail[128];
            snprintf(detail, sizeof detail, "%s has to be a number from %ld to %ld, not '%.40s'",
                     option->flag, option->low, option->high, value);
            return usage("%s", detail);
        }
        if (strcmp(option->flag, "--mode") == 0 && strcmp(value, "auto") != 0 &&
            strcmp(value, "threads") != 0 && strcmp(value, "mask") != 0)
            return usage("--mode has to be auto, threads or mask, not '%s'", value);
        setenv(option->variable, value, 1);
    }
    if (i >= count) return usage("no command was given%s", "");
    const char* min = getenv("HEDDLE_MIN");
    const char* max = getenv("HEDDLE_MAX");
    if (min != NULL && max != NULL && atol(max) != 0 && atol(min) > atol(max))
        return usage("--min is above --max%s", "");
    *command = i;
    return 0;
}

/* The folder of this executable, from which its parts are found. */
static bool own_folder(char folder[PATH_MAX]) {
    const ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length <= 0) return false;
    folder[length] = '\0';
    char* slash = strrchr(folder, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    return true;
}

/* The first of the places that exists; each is relative to our folder. False leaves `path` empty. */
static bool find_part(const char* const* places, char path[PATH_MAX]) {
    char folder[PATH_MAX];
    if (!own_folder(folder)) return false;
    for (; *places != NULL; ++places)
        if (snprintf(path, PATH_MAX, "%s/%s", folder, *places) < PATH_MAX && access(path, R_OK) == 0)
            return true;
    path[0] = '\0';
    return false;
}

/* Makes sure that an arbiter listens and names its socket to the program. Returns NULL, or why there is none.
 */
static const char* find_arbiter(void) {
    static char problem[HEDDLE_PROBLEM_BYTES];
    static const char* const daemons[] = {"heddled", "../sbin/heddled", NULL};
    char path[HEDDLE_SOCKET_PATH_BYTES];
    char daemon[PATH_MAX];
    const enum heddle_arbiter_place place = heddle_arbiter_path(path, problem);
    switch (place) {
        case HEDDLE_ARBITER_OFF:
            return "HEDDLE_ARBITER is off";
        case HEDDLE_ARBITER_IMPOSSIBLE:
            return problem;
        case HEDDLE_ARBITER_USER:
            if (!find_part(daemons, daemon)) return "heddled is not installed beside heddle";
            if (!arbiter_ensure(path, daemon, problem)) return problem;
            break;
        case HEDDLE_ARBITER_EXPLICIT:
        case HEDDLE_ARBITER_SYSTEM:
            if (!arbiter_listens(path)) {
                snprintf(problem, sizeof problem, "nothing listens at %s: %s", path, strerror(errno));
                return problem;
            }
    }
    setenv("HEDDLE_ARBITER", path, 1);
    return NULL;
}

static bool preload(void) {
    static const char* const libraries[] = {"../lib/libheddle-launch.so",
                                            "../" HEDDLE_LIBDIR "/heddle/libheddle-launch.so", NULL};
    char library[PATH_MAX];
    if (!find_part(libraries, library)) return false;
    const char* others = getenv("LD_PRELOAD");
    if (others == NULL || *others == '\0') return setenv("LD_PRELOAD", library, 1) == 0;
    char* both = malloc(strlen(library) + strlen(others) + 2);
    if (both == NULL) return false;
    sprintf(both, "%s:%s", library, others);
    const bool set = setenv("LD_PRELOAD", both, 1) == 0;
    free(both);
    return set;
}

static int run(int count, char** words) {
    int command = 0;
    bool require = false;
    const int failure = parse(count, words, &command, &require);
    if (failure != 0) return failure;
    char** program = words + command;

    const char* unmanaged = find_arbiter();
    if (unmanaged != NULL && require) {
        fprintf(stderr, "heddle run: %s, and --require was given\n", unmanaged);
        return kServiceAbsent;
    }
    if (unmanaged == NULL) unmanaged = program_unmanageable(program[0]);
    if (unmanaged == NULL && !preload()) unmanaged = "libheddle-launch.so is not installed beside heddle";
    if (unmanaged != NULL) {
        fprintf(stderr, "heddle run: %s runs unmanaged: %s\n", program[0], unmanaged);
        setenv("HEDDLE_ARBITER", "off", 1);
    }
    execvp(program[0], program);
    const int why = errno;
    fprintf(stderr, "heddle run: cannot run %s: %s\n", program[0], strerror(why));
    return why == ENOENT ? kNotFound : kCannotExecute;
}

int main(int argc, char** argv) {
    if (argc > 1 && strcmp(argv[1], "run") == 0) return run(argc - 2, argv + 2);
    static const char* const tools[] = {"heddle-tool", "../libexec/heddle/heddle-tool", NULL};
    char tool[PATH_MAX];
    if (find_part(tools, tool)) execv(tool, argv);
    fprintf(stderr, "heddle: heddle-tool is not installed beside heddle; reinstall heddle\n");
    return 1;
}
