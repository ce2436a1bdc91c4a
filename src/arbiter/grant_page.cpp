#include "arbiter/grant_page.hpp"

#include "base/failpoint.h"
#include "cores/codec.hpp"

namespace heddle {

void show_grant(heddle_grant_page& page, const Publish& publish) {
    // The writer's half of the sequence lock of protocol.h. release: who reads any of what follows also reads
    // the odd epoch, or a later one.
    page.epoch.store(publish.epoch - 1, std::memory_order_relaxed);
    HEDDLE_FAILPOINT(publish_begins);
    const heddle_mask mask = mask_of(publish.cpus);
    for (size_t i = 0; i < HEDDLE_MASK_WORDS; ++i)
        page.mask[i].store(mask.words[i], std::memory_order_release);
    HEDDLE_FAILPOINT(publish_is_half_done);
    // seq_cst, and `contended` below, with the client's demand: it sees these, or we its demand, which the
    // server reads after this.
    page.count.store(static_cast<uint32_t>(publish.cpus.count()));
    page.leaving.store(publish.leaving ? 1 : 0, std::memory_order_release);
    const uint32_t contended = publish.contended ? uint32_t{HEDDLE_CONTENDED} : 0;
    const uint32_t parked = publish.parked ? uint32_t{HEDDLE_PARKED} : 0;
    const uint32_t turn = publish.has_turn ? uint32_t{HEDDLE_TURN} : 0;
    page.contended.store(contended | parked | turn);
    page.epoch.store(publish.epoch, std::memory_order_release);
}

}  // namespace heddle
