#define OFFSET 100
