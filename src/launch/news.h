/* What happens in the folder of an arbiter, for the thread that waits for one there.
 *
 * That thread alone calls these, but for news_end(). The program may close the descriptor, or open a file of
 * its own under the number: that one is neither read nor closed.
 */
#ifndef HEDDLE_LAUNCH_NEWS_H
#define HEDDLE_LAUNCH_NEWS_H

#include <stdbool.h>

/* From now on; the folder may be another one by that name each time. False: nothing will be heard. */
bool news_watch(const char* folder);
/* Until something has happened, or for so long; -1: however long, where something would be heard. */
void news_wait(int timeout_ms);
/* In a forked child too: the parent's is none of its own. */
void news_close(void);
/* For good: a wait returns soon. Any thread. */
void news_end(void);
bool news_have_ended(void);

#endif
