// block_or_withdraw(): a wait of which others know, and which may be refused.
#pragma once

#include "heddle/pause.hpp"

namespace heddle::streams {

/// Returns when `condition` was signalled. What block() throws is thrown once `withdraw` has seen to it that
/// nobody signals the condition any more; it returns false where somebody had done so before, and then the
/// wait has ended.
template <class Withdraw>
void block_or_withdraw(BlockCondition& condition, const Withdraw& withdraw) {
    try {
        condition.block();
    } catch (...) {
        if (withdraw()) throw;
    }
}

}  // namespace heddle::streams
