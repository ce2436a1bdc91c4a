// The switch of context.hpp on Boost.Context, for processors without one of our own.
//
// Boost tells the address of a context only where it was switched to, so the place to write it to travels
// along.
#include "fibers/context.hpp"

#ifdef HEDDLE_FIBERS_ON_BOOST
#include <boost/context/detail/fcontext.hpp>

namespace heddle {
namespace {

namespace boost_context = boost::context::detail;

/// On the stack of the side that is left, which nobody resumes before the hand-off runs.
struct Message {
    Context* save;
    Handoff handoff;
};

Handoff arrive(boost_context::transfer_t transfer) {
    const Message message = *static_cast<const Message*>(transfer.data);
    *message.save = transfer.fctx;
    return message.handoff;
}

/// Where it begins, the first message is the fiber.
void begin(boost_context::transfer_t made) {
    void* const fiber = made.data;
    const Handoff handoff = arrive(boost_context::jump_fcontext(made.fctx, nullptr));
    fiber_main(fiber, handoff);
}

}  // namespace

Handoff switch_context(Context* save, Context to, Handoff handoff) {
    Message message{save, handoff};
    return arrive(boost_context::jump_fcontext(to, &message));
}

Context make_context(void* top, void* fiber) {
    // The size is for Boost's segmented stacks alone.
    const boost_context::fcontext_t fresh = boost_context::make_fcontext(top, 0, begin);
    return boost_context::jump_fcontext(fresh, fiber).fctx;
}

}  // namespace heddle
#endif
