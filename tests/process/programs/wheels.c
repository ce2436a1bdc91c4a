// wheels: two objects loaded with RTLD_LOCAL, each with a libgomp of its own, as Python's wheels bring them.
// Each opens regions; the numbers that they set tell the two copies apart.
//
// wheels FOLDER [deepbind | many]: FOLDER holds one.so and two.so; "" leaves it to the program's own search
// path. After deepbind it stays for a moment, so that somebody can look at it. Many are wheel_a.so to
// wheel_h.so, too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int (*team_function)(int threads, int* number);

static team_function load(const char* folder, const char* name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", folder, *folder == '\0' ? "" : "/", name);
    void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (object == NULL) {
        fprintf(stderr, "wheels: %s\n", dlerror());
        return NULL;
    }
    team_function team;
    *(void**)&team = dlsym(object, "team");
    return team;
}

int main(int count, char** words) {
    if (count < 2) return 2;
    const int flags = count > 2 && strcmp(words[2], "deepbind") == 0 ? RTLD_DEEPBIND : 0;
    const team_function one = load(words[1], "one.so", flags);
    const team_function two = load(words[1], "two.so", flags);
    if (one == NULL || two == NULL) return 1;
    /* Each sets its own number, which the other's libgomp must not see. */
    int numbers[3];
    const int first = one(3, &numbers[0]), second = two(2, &numbers[1]), third = one(0, &numbers[2]);
    printf("numbers %d %d %d teams %d %d %d\n", numbers[0], numbers[1], numbers[2], first, second, third);
    for (char letter = 'a'; letter <= 'h' && count > 2 && strcmp(words[2], "many") == 0; ++letter) {
        char name[] = {'w', 'h', 'e', 'e', 'l', '_', letter, '.', 's', 'o', '\0'};
        const team_function team = load(words[1], name, 0);
        if (team == NULL) return 1;
        int number;
        const int threads = team(2 + letter % 2, &number);
        printf("%s number %d team %d\n", name, number, threads);
    }
    if (flags != 0) usleep(300000);
    return 0;
}
