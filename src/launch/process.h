/* The life of this process under management: begin, fork, exec. */
#ifndef HEDDLE_LAUNCH_PROCESS_H
#define HEDDLE_LAUNCH_PROCESS_H

/* A forked child is nobody to the arbiter until it becomes parallel: called where a region opens or a thread
 * is made. One load where there is nothing to do. */
void process_join(void);

#endif
