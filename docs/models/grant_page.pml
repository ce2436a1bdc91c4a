/* The grant page and its sequence lock: Server::apply(Publish) of src/arbiter/outgoing.cpp against
 * ArbiterConnection::read_grant and link_read_grant, for Spin.
 *
 * The mask of a grant is many words, here two, and both carry the number of the grant: a reader that obeys
 * two words of different grants obeys a torn one (the assertion). The arbiter may die after any store and
 * leave the page as it is; whoever reads it then must come to an end all the same, obeying what it knew
 * before: the claim `ends`. Each access is a step, in program order: that the orders in the code keep it so
 * is what the explorer of tests/explored shows.
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define EPOCH_STAYS_EVEN 1     /* the writer does not mark that it is at work */
#define EPOCH_IS_READ_ONCE 2   /* the reader does not look at the epoch again */
#define EPOCH_FIRST 3          /* the writer says that it is done before it is */
#define READER_NEVER_GIVES_UP 4

#define GRANTS 3
#define TRIES 3

byte epoch;
byte low, high;
bool done;

proctype writer() {
    byte grant = 1;
    do
    :: grant <= GRANTS ->
        if
        :: MUTANT == EPOCH_FIRST -> epoch = 2 * grant
        :: MUTANT != EPOCH_STAYS_EVEN && MUTANT != EPOCH_FIRST -> epoch = 2 * grant - 1
        :: MUTANT == EPOCH_STAYS_EVEN
        fi;
        low = grant;
        high = grant;
        epoch = 2 * grant;
        grant++
    :: grant > GRANTS -> break
    :: break /* it is killed here, and in the next two */
    :: grant <= GRANTS -> epoch = 2 * grant - 1; break
    :: grant <= GRANTS -> epoch = 2 * grant - 1; low = grant; break
    od
}

proctype reader() {
    byte before, first, second, tries;
    do
    :: tries == TRIES -> break
    :: tries < TRIES ->
        before = epoch;
        first = low;
        second = high;
        if
        :: before % 2 == 0 && (MUTANT == EPOCH_IS_READ_ONCE || epoch == before) ->
            assert(first == second);
            break
        :: else -> tries = (MUTANT == READER_NEVER_GIVES_UP -> 0 : tries + 1)
        fi
    od;
    done = true
}

init {
    atomic {
        run writer();
        run reader()
    }
}

ltl ends { <>done }
