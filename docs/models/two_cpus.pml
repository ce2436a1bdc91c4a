/* Two CPUs in one grant: what they have in common is the page's epoch, and LEFT, which says of one epoch that
 * the client is off all CPUs that were asked back up to it. For Spin; handover.pml has one CPU, and more of it.
 *
 * The client `me`, with its link thread and its other threads; the arbiter; and the rest of the world, which
 * holds a CPU, hands it over to the client once the client was named, or gives it back, and leaves at once when
 * it is asked to. What is under the client's mutex is in steps only where another process may come between. The
 * grant page is taken for one word (grant_page.pml). GRANTS bounds the generations of each CPU, ASKED how often
 * CPUs are asked back.
 *
 * What holds: the client and the rest of the world are never on one CPU (the assertions in come() and
 * world_comes()), and nobody is stuck in the middle of anything. MUTANT leaves out one rule.
 */
#ifndef GRANTS
#define GRANTS 2
#endif
#ifndef ASKED
#define ASKED 2
#endif
#ifndef FENCES
#define FENCES 0
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define LEFT_AFTER_ONE 1    /* the client says that it left when it is off one of the CPUs */
#define LEFT_OF_THE_NEWEST 2 /* it names the epoch that is shown, not the one that it obeys */
#define LEFT_WHILE_TAKEN 3  /* it says so while a CPU that was handed to it is not confirmed */
#define EVERY_LEFT_COUNTS 4 /* the arbiter counts what was asked back later as left, too */

#define CPUS 2
#define NOBODY 0
#define ME 1
#define WORLD 2

/* ArbiterClient::State. */
#define ABSENT 0
#define HELD 1
#define TAKEN 2
#define LEAVING 3

/* The client's grant page. */
bool mask[CPUS];
byte successor[CPUS]; /* the generation of its grant */
byte lender[CPUS];    /* the generation that the world may hand over to it; 0: none */
byte epoch;
bool leaving;
/* Release words: the generation that was released; by the client, and by the world to the client. */
byte released[CPUS];
byte handed[CPUS];
byte left; /* LEFT is under way: the epoch; messages come in order, and the last says most */

byte belief[CPUS];
bool on[CPUS];
bool world_on[CPUS];

/* The arbiter's ledger. */
byte holder[CPUS];
byte generation[CPUS];
bool named[CPUS];
byte asked_at[CPUS]; /* the epoch in which it was asked back; 0: it was not */
bool ended[CPUS];    /* the client was named for a grant that is over, and not shown that */

inline come(c) {
    on[c] = true;
    assert(!world_on[c])
}
inline world_comes(c) {
    world_on[c] = true;
    assert(!on[c])
}

/* -------- the client */

#define UNDER_WAY(c) (belief[c] == LEAVING || (belief[c] == TAKEN && MUTANT != LEFT_WHILE_TAKEN))
#define MAY_SAY_LEFT (MUTANT == LEFT_AFTER_ONE -> (!UNDER_WAY(0) || !UNDER_WAY(1)) : (!UNDER_WAY(0) && !UNDER_WAY(1)))

inline say_left() {
    if
    :: leaving && MAY_SAY_LEFT -> left = (MUTANT == LEFT_OF_THE_NEWEST -> epoch : obeyed)
    :: else
    fi
}

inline obey_of(c) {
    if
    :: mask[c] && released[c] != successor[c] ->
        belief[c] = HELD;
        come(c)
    :: !mask[c] && (belief[c] == HELD || (belief[c] == TAKEN && denied[c])) -> belief[c] = LEAVING
    :: else
    fi;
    denied[c] = false
}

/* The lenders first: the arbiter shows the grant before it takes the lender away. */
inline look_at_lenders() {
    d_step {
        epoch != obeyed ->
        denied[0] = belief[0] == TAKEN && lender[0] != taken[0];
        denied[1] = belief[1] == TAKEN && lender[1] != taken[1]
    }
}

inline obey() {
    d_step {
        obey_of(0);
        obey_of(1);
        obeyed = epoch;
        say_left()
    }
}

inline release_cpu(c) {
    d_step {
        belief[c] == HELD || belief[c] == LEAVING ->
        on[c] = false;
        seen = successor[c]
    }
    d_step {
        released[c] = seen;
        belief[c] = ABSENT;
        seen = 0;
        say_left()
    }
}

inline take_cpu(c) {
    atomic { belief[c] == ABSENT && lender[c] > successor[c] && handed[c] == lender[c] -> seen = lender[c] }
    d_step {
        if
        :: lender[c] == seen && lender[c] > successor[c] ->
            belief[c] = TAKEN;
            taken[c] = seen;
            come(c)
        :: else
        fi;
        seen = 0
    }
}

proctype client() {
    byte taken[CPUS], seen, obeyed;
    bool denied[CPUS];
end:
    do
    :: look_at_lenders(); obey()
    :: release_cpu(0)
    :: release_cpu(1)
    :: take_cpu(0)
    :: take_cpu(1)
    od
}

/* -------- the world: it is named for nothing, and leaves at once */

inline hand_over(c) {
    d_step {
        world_on[c] && named[c] && handed[c] != generation[c] ->
        world_on[c] = false;
        handed[c] = generation[c]
    }
}

proctype world() {
end:
    do
    :: hand_over(0)
    :: hand_over(1)
    od
}

/* -------- the arbiter */

inline publish(c, granted) {
    d_step {
        mask[c] = granted;
        epoch++;
        leaving = asked_at[0] != 0 || asked_at[1] != 0
    }
}

inline grant_to_client(c) {
    d_step {
        holder[c] = ME;
        generation[c]++;
        asked_at[c] = 0;
        ended[c] = named[c];
        named[c] = false;
        successor[c] = generation[c]
    }
    publish(c, true);
    d_step { lender[c] = (ended[c] -> 0 : lender[c]); ended[c] = false }
}

inline end_grant(c) {
    d_step { holder[c] = NOBODY; asked_at[c] = 0 }
    publish(c, false)
}

inline grant_to_world(c) {
    d_step {
        holder[c] == NOBODY && generation[c] < GRANTS ->
        holder[c] = WORLD;
        generation[c]++;
        world_comes(c)
    }
}

/* The lender word is closed before the world's release word is read for the last time. */
inline take_from_world(c) {
    d_step { holder[c] == WORLD -> lender[c] = 0 }
    if
    :: named[c] && handed[c] == generation[c] -> grant_to_client(c)
    :: else -> d_step { holder[c] = NOBODY; world_on[c] = false; named[c] = false }
    fi
}

inline name_client(c) {
    d_step {
        holder[c] == WORLD && !named[c] && generation[c] < GRANTS && !ended[c] ->
        lender[c] = generation[c];
        named[c] = true
    }
}

inline ask_back(c) {
    d_step {
        holder[c] == ME && asked_at[c] == 0 && asks > 0 ->
        asks--;
        asked_at[c] = epoch + 1;
        mask[c] = false;
        epoch++;
        leaving = true
    }
}

#define GAVE_BACK(c) (holder[c] == ME && released[c] == generation[c])
#define HANDED(c) (holder[c] == WORLD && named[c] && handed[c] == generation[c])
#define LEFT_OF(c) (holder[c] == ME && asked_at[c] != 0 && left != 0 && \
                    (asked_at[c] <= left || MUTANT == EVERY_LEFT_COUNTS))

inline fence(c) {
    d_step { fences > 0 && holder[c] == ME && asked_at[c] != 0 -> fences--; on[c] = false }
    end_grant(c)
}

proctype arbiter() {
    byte asks = ASKED, fences = FENCES;
end:
    do
    :: GAVE_BACK(0) -> end_grant(0)
    :: GAVE_BACK(1) -> end_grant(1)
    :: HANDED(0) -> grant_to_client(0)
    :: HANDED(1) -> grant_to_client(1)
    :: LEFT_OF(0) -> end_grant(0)
    :: LEFT_OF(1) -> end_grant(1)
    :: d_step { left != 0 && !LEFT_OF(0) && !LEFT_OF(1) -> left = 0 }
    :: holder[0] == NOBODY && generation[0] < GRANTS -> grant_to_client(0)
    :: holder[1] == NOBODY && generation[1] < GRANTS -> grant_to_client(1)
    :: grant_to_world(0)
    :: grant_to_world(1)
    :: take_from_world(0)
    :: take_from_world(1)
    :: name_client(0)
    :: name_client(1)
    :: ask_back(0)
    :: ask_back(1)
    :: fence(0)
    :: fence(1)
    od
}

init {
    atomic {
        run client();
        run world();
        run arbiter()
    }
}
