/* A libgomp that was linked into a program or library statically. Its regions do not pass us, so that they
 * are not followed; its threads are bound and take turns as a program's own do. Told once. */
#ifndef HEDDLE_LAUNCH_EMBEDDED_H
#define HEDDLE_LAUNCH_EMBEDDED_H

/* The object that `caller` is in makes a thread, and is no runtime that we know. Looked at once an object;
 * any thread. */
void embedded_noticed(const void* caller);

#endif
