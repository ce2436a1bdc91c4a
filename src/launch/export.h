/* What the library shows to the program it is loaded into: the names it interposes, and nothing else. */
#ifndef HEDDLE_LAUNCH_EXPORT_H
#define HEDDLE_LAUNCH_EXPORT_H

#define HEDDLE_EXPORT __attribute__((visibility("default")))

#endif
