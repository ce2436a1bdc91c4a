/* Programs of the S-Net run-time system include this. */
#include <stdbool.h>
