/* A library whose constructor has a thread do something that waits, and starts another one. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static void* wait_a_little(void* start_another) {
    pthread_t thread;
    usleep(1000);
    poll(NULL, 0, 1);
    close(-1);
    if (start_another != NULL && pthread_create(&thread, NULL, wait_a_little, NULL) == 0)
        pthread_join(thread, NULL);
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    static int another;
    if (pthread_create(&thread, NULL, wait_a_little, &another) == 0) pthread_join(thread, NULL);
}
