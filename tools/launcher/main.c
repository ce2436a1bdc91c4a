/* heddle, the command itself: a static C program, because `heddle run` must cost next to nothing. It starts
 * programs; every other subcommand is heddle-tool's, which it becomes.
 *
 * `heddle run` connects to the arbiter or starts one, registers, puts libheddle-launch.so before the
 * program's libraries and becomes the program: same process, so exit code, signals and terminal are the
 * program's own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arbiter_start.h"
#include "cores/arbiter_path.h"
#include "launch/hello.h"
#include "program_check.h"
#include "run_options.h"

enum { kUsage = 2, kServiceAbsent = 69, kCannotExecute = 126, kNotFound = 127 };

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

static bool find_tool(char path[PATH_MAX]) {
    static const char* const places[] = {"heddle-tool", "../" HEDDLE_LIBEXECDIR "/heddle/heddle-tool", NULL};
    return find_part(places, path);
}

/* Our connection to the arbiter, closed on exec until it is handed over; -1 without one. */
static int arbiter = -1;

/* Connects to the arbiter and names its socket to the program. Returns NULL, or why there is none. */
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
            arbiter = arbiter_ensure(path, daemon, problem);
            if (arbiter < 0) return problem;
            break;
        case HEDDLE_ARBITER_EXPLICIT:
        case HEDDLE_ARBITER_SYSTEM:
            arbiter = hello_connect(path);
            if (arbiter < 0) {
                if (place == HEDDLE_ARBITER_SYSTEM && errno == ECONNREFUSED)
                    return HEDDLE_SYSTEM_ARBITER_DIED;
                const bool nobody = errno == ENOENT || errno == ECONNREFUSED;
                snprintf(problem, sizeof problem, "%s %s: %s",
                         nobody ? "nothing listens at" : "cannot connect to", path, strerror(errno));
                return problem;
            }
    }
    setenv("HEDDLE_ARBITER", path, 1);
    return NULL;
}

/* Registers this process as the program that it becomes. The answer comes while the program is loaded. */
static bool register_program(const char* name) {
    const char* slash = strrchr(name, '/');
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    const struct hello hello = {
        .name = slash == NULL ? name : slash + 1, .mode = hello_mode(), .demand = 1, .allowed = &allowed};
    return hello_send(arbiter, &hello) == 0 && hello_hand_over(arbiter, &allowed, hello.name);
}

/* Looks at the arbiter's answer and leaves it to the program. NULL where it is a welcome, which says whether
 * the policy has owners. */
static const char* refusal(bool* owners) {
    struct pollfd ready = {.fd = arbiter, .events = POLLIN};
    if (poll(&ready, 1, kAnswerDeadlineMs) != 1) return "the arbiter does not answer";
    static union {
        heddle_header header;
        heddle_welcome welcome;
        heddle_refused refused;
    } answer;
    struct iovec part = {&answer, sizeof answer};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    const ssize_t got = hello_receive(arbiter, &packet, MSG_PEEK);
    if (got <= 0) return "the arbiter hung up";
    const bool ours = got >= (ssize_t)sizeof answer.header && answer.header.magic == HEDDLE_PROTOCOL_MAGIC;
    if (ours && answer.header.type == HEDDLE_REFUSED && got == sizeof answer.refused) {
        answer.refused.text[sizeof answer.refused.text - 1] = '\0';
        return answer.refused.text;
    }
    /* A welcome brings descriptors, for which we left no room. */
    const bool welcome = ours && answer.header.version == HEDDLE_PROTOCOL_VERSION &&
                         answer.header.type == HEDDLE_WELCOME && got == sizeof answer.welcome &&
                         (packet.msg_flags & MSG_CTRUNC) != 0;
    if (welcome) *owners = answer.welcome.owners != 0;
    return welcome ? NULL : "what listens there is not an arbiter";
}

/* The program asks for CPUs of its own. Nobody else waits for the arbiter's answer. */
static bool wants_own(void) {
    const char* own = getenv("HEDDLE_OWN");
    return own != NULL && *own != '\0';
}

/* Why the program's own CPUs would be nobody's. */
static const char* no_owners(void) {
    static char problem[HEDDLE_PROBLEM_BYTES];
    snprintf(problem, sizeof problem,
             "--own (HEDDLE_OWN) means nothing to the arbiter at %s, whose policy has no owners; end it "
             "(heddle status tells its pid) and run heddled --policy owned",
             getenv("HEDDLE_ARBITER"));
    return problem;
}

/* An arbiter that is there has a machine, and does not look at a description that cannot be read: the tool
 * does, and says so in its one line. What else is wrong with variables was told. */
static void check_described_machine(void) {
    static const char ours[] = "HEDDLE_", described[] = "HEDDLE_TOPOLOGY=";
    const char* description = getenv("HEDDLE_TOPOLOGY");
    char tool[PATH_MAX];
    if (description == NULL || *description == '\0' || !find_tool(tool)) return;
    const pid_t child = fork();
    if (child == 0) {
        char** kept = environ;
        for (char** entry = environ; *entry != NULL; ++entry)
            if (strncmp(*entry, ours, sizeof ours - 1) != 0 ||
                strncmp(*entry, described, sizeof described - 1) == 0)
                *kept++ = *entry;
        *kept = NULL;
        execl(tool, "heddle", "check-topology", (char*)NULL);
        _exit(1);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* AddressSanitizer's library wants to be the first that is loaded, and ours comes before it: it says so with
 * an error unless it is told not to look. Its functions are called all the same. */
static void allow_before_sanitizer(void) {
    const char* before = getenv("ASAN_OPTIONS");
    if (before != NULL && strstr(before, "verify_asan_link_order") != NULL) return;
    char options[HEDDLE_PROBLEM_BYTES];
    const int written = snprintf(options, sizeof options, "%s%sverify_asan_link_order=0",
                                 before == NULL ? "" : before, before == NULL || *before == '\0' ? "" : ":");
    if (written > 0 && (size_t)written < sizeof options) setenv("ASAN_OPTIONS", options, 1);
}

/* NULL, or why the library is not loaded. */
static const char* preload(void) {
    static const char* const libraries[] = {"../lib/libheddle-launch.so",
                                            "../" HEDDLE_LIBDIR "/heddle/libheddle-launch.so", NULL};
    char library[PATH_MAX];
    if (!find_part(libraries, library)) return "libheddle-launch.so is not installed beside heddle";
    if (strpbrk(library, " :") != NULL)
        return "heddle is installed in a folder with a space or colon in its name, which ends a library's "
               "name";
    allow_before_sanitizer();
    const char* others = getenv("LD_PRELOAD");
    if (others == NULL || *others == '\0')
        return setenv("LD_PRELOAD", library, 1) == 0 ? NULL : strerror(errno);
    char* both = malloc(strlen(library) + strlen(others) + 2);
    if (both == NULL) return strerror(errno);
    sprintf(both, "%s:%s", library, others);
    const bool set = setenv("LD_PRELOAD", both, 1) == 0;
    free(both);
    return set ? NULL : strerror(errno);
}

/* As execvp(3) of the C library that programs are used to: what has no first line of its own is a script of
 * the shell. Returns where that fails. */
static void become(const char* path, char** words) {
    execv(path, words);
    if (errno != ENOEXEC) return;
    int count = 0;
    while (words[count] != NULL) ++count;
    char** shell = calloc((size_t)count + 2, sizeof *shell);
    if (shell == NULL) return;
    memcpy(shell + 1, words, (size_t)count * sizeof *shell);
    shell[0] = "sh";
    shell[1] = (char*)(size_t)path;
    execv("/bin/sh", shell);
    free(shell);
    errno = ENOEXEC;
}

/* What was printed may not have arrived. */
static int told(const char* command) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    fprintf(stderr, "heddle %s: cannot write to stdout: %s\n", command, strerror(errno));
    return 1;
}

/* The exit codes of shells. */
static int cannot_run(const char* name, int why) {
    fprintf(stderr, "heddle run: cannot run %s: %s\n", name, strerror(why));
    return why == ENOENT ? kNotFound : kCannotExecute;
}

/* What it runs is managed, or says why not. */
static bool is_this_program(const char* path) {
    struct stat its, ours;
    return stat(path, &its) == 0 && stat("/proc/self/exe", &ours) == 0 && its.st_dev == ours.st_dev &&
           its.st_ino == ours.st_ino;
}

static int run(int count, char** words) {
    hello_discard(); /* of another program that became this one */
    int command = 0;
    bool require = false;
    const int ended = run_options(count, words, &command, &require);
    if (ended != RUN_OPTIONS_OK) return ended == 0 ? told("run") : ended;
    char** program = words + command;
    char path[PATH_MAX];
    const int missing = program_find(program[0], path);
    if (missing != 0) return cannot_run(program[0], missing);

    const char* absent = find_arbiter();
    if (absent == NULL) check_described_machine();
    bool children = false;
    const char* unmanaged = absent != NULL ? absent : program_unmanageable(path, &children);
    if (unmanaged == NULL || children) {
        const char* not_loaded = preload();
        if (not_loaded != NULL) unmanaged = not_loaded;
    }
    if (unmanaged == NULL && !register_program(program[0])) unmanaged = absent = strerror(errno);
    bool owners = true;
    if (unmanaged == NULL && (require || wants_own())) {
        const char* refused = refusal(&owners);
        if (require) unmanaged = absent = refused; /* else the program says so */
    }
    if (!owners && wants_own()) {
        if (require)
            absent = no_owners();
        else
            fprintf(stderr, "heddle run: %s\n", no_owners());
    }
    if (absent != NULL && require) {
        fprintf(stderr, "heddle run: %s, and --require was given\n", absent);
        return kServiceAbsent;
    }
    if (unmanaged != NULL) {
        if (!is_this_program(path))
            fprintf(stderr, "heddle run: %s runs unmanaged: %s\n", program[0], unmanaged);
        if (!children) setenv("HEDDLE_ARBITER", "off", 1);
        hello_discard();
        const bool stays = children && arbiter >= 0 && hello_stay(arbiter); /* for the children */
        if (!stays && arbiter >= 0) close(arbiter);
    }
    become(path, program);
    return cannot_run(program[0], errno);
}

static int start(int count, char** words) {
    static const char kHelp[] =
        "Usage: heddle start\n"
        "Starts the arbiter where none listens, and says where it does. Programs that use\n"
        "heddle do so by themselves. Exit code 69 where there can be none.\n"
        "\n"
        "  --help        this text\n";
    if (count == 1 && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        fputs(kHelp, stdout);
        return told("start");
    }
    if (count > 0) {
        fprintf(stderr, "heddle start: there is no %s here; heddle start --help tells what there is\n",
                words[0]);
        return kUsage;
    }
    const char* absent = find_arbiter();
    if (absent != NULL) {
        fprintf(stderr, "heddle start: %s\n", absent);
        return kServiceAbsent;
    }
    printf("%s\n", getenv("HEDDLE_ARBITER"));
    return told("start");
}

/* Who records wants to see the first program from its start, so the arbiter has to be there before it; who
 * asks how to, does not. */
static bool records(int argc, char** argv) {
    if (argc < 3 || strcmp(argv[1], "trace") != 0 || strcmp(argv[2], "record") != 0) return false;
    for (int i = 3; i < argc && strcmp(argv[i], "--") != 0; ++i)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return false;
    return true;
}

int main(int argc, char** argv) {
    if (argc > 1 && strcmp(argv[1], "run") == 0) return run(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "start") == 0) return start(argc - 2, argv + 2);
    if (records(argc, argv)) (void)find_arbiter(); /* where there can be none, the tool says why */
    char tool[PATH_MAX];
    if (find_tool(tool)) execv(tool, argv);
    fprintf(stderr, "heddle: heddle-tool is not installed beside heddle; reinstall heddle\n");
    return 1;
}
