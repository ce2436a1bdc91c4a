/* launch/link.c with its statics in reach: the page that a scenario writes is the process's grant page. */
#include "launch/link.c"

void link_use_page(const heddle_grant_page* page);
void link_use_page(const heddle_grant_page* page) {
    atomic_store(&pages->grant, page);
}
