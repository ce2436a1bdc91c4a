/* Every entry of libgomp that opens or closes a parallel region on the host, and those in which the threads
 * of one wait for each other: as GCC 12's has them, by which it is tested. Their versions are GOMP_1.0 to
 * GOMP_5.0, so that objects of older compilers are there, too. A libgomp has to have GOMP_parallel, which
 * came with GCC 4.9; others that it lacks nobody calls. */
#ifndef HEDDLE_LAUNCH_LIBGOMP_ENTRIES_H
#define HEDDLE_LAUNCH_LIBGOMP_ENTRIES_H

#define LIBGOMP_ENTRIES(ENTRY)                           \
    ENTRY(GOMP_parallel)                                 \
    ENTRY(GOMP_parallel_reductions)                      \
    ENTRY(GOMP_parallel_sections)                        \
    ENTRY(GOMP_parallel_loop_static)                     \
    ENTRY(GOMP_parallel_loop_dynamic)                    \
    ENTRY(GOMP_parallel_loop_guided)                     \
    ENTRY(GOMP_parallel_loop_nonmonotonic_dynamic)       \
    ENTRY(GOMP_parallel_loop_nonmonotonic_guided)        \
    ENTRY(GOMP_parallel_loop_runtime)                    \
    ENTRY(GOMP_parallel_loop_nonmonotonic_runtime)       \
    ENTRY(GOMP_parallel_loop_maybe_nonmonotonic_runtime) \
    ENTRY(GOMP_parallel_start)                           \
    ENTRY(GOMP_parallel_end)                             \
    ENTRY(GOMP_parallel_sections_start)                  \
    ENTRY(GOMP_parallel_loop_static_start)               \
    ENTRY(GOMP_parallel_loop_dynamic_start)              \
    ENTRY(GOMP_parallel_loop_guided_start)               \
    ENTRY(GOMP_parallel_loop_runtime_start)              \
    ENTRY(GOMP_teams_reg)                                \
    ENTRY(GOMP_barrier)                                  \
    ENTRY(GOMP_loop_end)                                 \
    ENTRY(GOMP_sections_end)                             \
    ENTRY(GOMP_ordered_start)                            \
    ENTRY(GOMP_barrier_cancel)                           \
    ENTRY(GOMP_loop_end_cancel)                          \
    ENTRY(GOMP_sections_end_cancel)                      \
    ENTRY(GOMP_doacross_post)                            \
    ENTRY(GOMP_doacross_ull_post)

enum libgomp_entry {
#define ENTRY(name) kEntry_##name,
    LIBGOMP_ENTRIES(ENTRY)
#undef ENTRY
        kEntryCount
};

#endif
