/* The one table of HEDDLE_* variables: name, values, meaning. C, because the launcher is. */
#ifndef HEDDLE_BASE_SETTINGS_TABLE_H
#define HEDDLE_BASE_SETTINGS_TABLE_H

#define HEDDLE_SETTINGS(SETTING)                                                                             \
    SETTING("HEDDLE_ARBITER", "auto|off|PATH",                                                               \
            "where the arbiter listens; off keeps the process to itself; auto starts one on demand")         \
    SETTING("HEDDLE_TOPOLOGY", "DESCRIPTION|xml:PATH",                                                       \
            "a machine to use in place of the real one: hwloc's synthetic form or a recorded topology")      \
    SETTING("HEDDLE_PLUGINS", "FOLDER",                                                                      \
            "engines and segments that are plug-ins; default: beside libheddle.so")                          \
    SETTING("HEDDLE_NAME", "TEXT", "the name under which a process is listed; default: its program's name")  \
    SETTING("HEDDLE_MIN", "N", "CPUs that a process and those it starts want at least, together")            \
    SETTING("HEDDLE_MAX", "N", "CPUs that a process wants at most; 0: no limit")                             \
    SETTING("HEDDLE_WEIGHT", "W", "weight of a process's demand, 1 to 1000; default 1")                      \
    SETTING("HEDDLE_OWN", "CPUS",                                                                            \
            "CPUs that are a process's own, as 0-3,8, where the arbiter's policy is owned")                  \
    SETTING("HEDDLE_LAPACK", "FILE", "the library that tile algorithms take BLAS and LAPACK from")           \
    SETTING("HEDDLE_TRACE", "FILE",                                                                          \
            "where a program writes which task ran where and when; %p stands for its pid")                   \
    SETTING("HEDDLE_RANK", "RANK/RANKS",                                                                     \
            "which of how many ranks of the directory/cache a process is, as 1/4")                           \
    SETTING("HEDDLE_MESH", "FOLDER|mpi",                                                                     \
            "where the ranks of the directory/cache find each other; mpi: by messages of mpirun's MPI")      \
    SETTING("HEDDLE_MPI", "openmpi|mpich",                                                                   \
            "the MPI of segments of kind mpi; default: the program's, or that of its mpirun")                \
    SETTING("HEDDLE_MEMORY", "PATH",                                                                         \
            "the socket of a memory server, for it and for its clients in other processes")                  \
    SETTING("HEDDLE_VMEM_SEGMENTS", "KIND[:PATH]",                                                           \
            "what the segments of programs of compat/vmem.hpp are made of, whatever they ask for")           \
    SETTING("HEDDLE_STACK_BYTES", "BYTES",                                                                   \
            "the stack of a task where a program names none: a power of two, 16384 to 1 GiB; default 65536") \
    SETTING("HEDDLE_DAG", "FILE.dot",                                                                        \
            "where a program writes the graph of its tasks, up to 10,000, for Graphviz")                     \
    SETTING("HEDDLE_MODE", "auto|threads|mask", "how an unmodified program is made to follow its CPUs")

#endif
