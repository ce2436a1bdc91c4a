// waits: two threads hand a number to each other, each with a wait for the other's turn. Says how often, and
// exits with 66 where ThreadSanitizer has something to say.
#include <pthread.h>
#include <stdio.h>

enum { kTurns = 1000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int number;

static void* every_other(void* parity) {
    for (int i = 0; i < kTurns; ++i) {
        pthread_mutex_lock(&mutex);
        while (number % 2 != *(int*)parity) pthread_cond_wait(&changed, &mutex);
        ++number;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(void) {
    int parities[2] = {0, 1};
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, every_other, &parities[i]);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    printf("%d turns\n", number);
    return 0;
}
