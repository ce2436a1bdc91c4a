// A second file with heddle/mpi.h: its calls of MPI take the same turns as those of the first.
#include "heddle/mpi.h"

pthread_mutex_t* turns_of_the_second_file(void);

pthread_mutex_t* turns_of_the_second_file(void) {
    return &heddle_mpi_one_at_a_time;
}
