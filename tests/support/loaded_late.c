/* Loads a library into a process that runs already, and looks for a function of its. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** words) {
    if (count != 3) return 2;
    void* const library = dlopen(words[1], RTLD_NOW);
    if (library != NULL && dlsym(library, words[2]) != NULL) return 0;
    fprintf(stderr, "%s\n", dlerror());
    return 1;
}
