/* Who has which CPU by the arbiter, and how it keeps to that when clients die and when it dies itself:
 * docs/ARBITER.md as processes, for Spin. handover.pml has one CPU and each access to its words; this has two
 * CPUs, three clients, and whole decisions.
 *
 * A step is one thing that the arbiter hears or decides, one of the two that it does to tell of it (it writes
 * the file that outlives it, then the client's page), or one that a client does under its mutex. The arbiter may
 * die after any of them. The next one keeps for the living what the file says they have. It moves nothing while
 * one of them is away, nor for a time after one came back that was on CPUs.
 * A client without an arbiter stays where it is, but leaves what it was asked for, and says in its HELLO what it
 * is on.
 *
 * Demand is in the clients' pages and changes CHANGES times, or ANY number of times. CRASHES clients die
 * anywhere, also while there is no arbiter; RESTARTS arbiters do. Clients may be away for longer than that time,
 * but for those that were just being asked for a CPU when it died: of these it is taken for granted that they are
 * in time (docs/HANDOVER.md).
 *
 * Left out: lending and handing over, the claims that come of it, and fences (handover.pml); epochs, of which
 * only is left for which CPUs a LEFT counts (two_cpus.pml, grant_page.pml); files that are lost or half written;
 * minima, owners, affinities and turns; clients that go without dying. Who is first among those who lack a CPU,
 * and which CPU moves, is open.
 *
 * What holds: two clients are never on one CPU (come()), and no CPU is kept for two (restore()). When nothing can
 * happen any more, and in the end always (the claim `settles`), nobody is asked for anything, a living client is
 * on each CPU, and nobody goes without one that it wants while another has two, or one that it does not want.
 * MUTANT leaves out one rule.
 */
#define ANY 255

#ifndef CHANGES
#define CHANGES 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define GRANTED_BEFORE_LEFT 1      /* what was asked back is free at once */
#define NOBODY_IS_AWAITED 2        /* a new arbiter moves CPUs at once */
#define DEATHS_GO_UNSEEN 3         /* what a dead client had stays its own */
#define HELD_IS_IGNORED 4          /* what a client says that it is on counts for nothing */
#define HOLDERS_ALONE_ARE_AWAITED 5 /* who keeps nothing by the file is not waited for */
#define SHOWN_BEFORE_SAVED 6       /* the page is written before the file */
#define EVERY_LEFT_COUNTS 7        /* LEFT counts for what was asked back after it, too */
#define LEFT_OF_ONE 8              /* a client says LEFT when it is off one of the CPUs */
#define NOTHING_IS_KEPT 9          /* a new arbiter does not look at the file */
#define KEPT_FOR_THE_DEAD 10       /* it does not look whether those in the file live */
#define LEAVING_IS_NOT_SAID 11     /* HELLO does not say what is being left */
#define NEVER_ASKED_BACK 12        /* only what is free is granted */

#define NOBODY 0
#define MOST 3
/* Sets of the two CPUs. */
#define BIT(cpu) (1 << (cpu))
#define COUNT(set) (((set) & 1) + ((set) >> 1))

/* The clients. */
byte wants[MOST + 1]; /* how many CPUs */
byte on[MOST + 1];    /* its threads may be on these: HELD or LEAVING */
byte going[MOST + 1]; /* of them, LEAVING */
byte seen[MOST + 1];  /* asked back up to the epoch that it obeys */
bool dead[MOST + 1];
/* Between client and arbiter. */
#define ALONE 0
#define ASKING 1 /* HELLO is under way */
#define LINKED 2
byte link[MOST + 1];
byte held[MOST + 1]; /* as HELLO says */
byte page[MOST + 1]; /* its grant */
bool news[MOST + 1]; /* the page is newer than what it obeys */
byte left[MOST + 1]; /* LEFT is under way, and counts for these */

/* The arbiter: its ledger, whom it knows, what it has still to write. */
bool up = true;
byte holder[2];
bool leaving[2];
bool joined[MOST + 1];
bool away[MOST + 1];
byte untold; /* whose grant is new */
bool told_half;
bool young;  /* it started less than the time of recovery ago */
bool came;   /* or less than that ago somebody came with CPUs */
/* The file: whether a client has a place, and what is in it. */
bool listed[MOST + 1];
byte saved[MOST + 1];
/* Not there in reality: asked back when its arbiter died, and not in the file since. */
byte owed[MOST + 1];

#define GRANTED(who) ((holder[0] == who && !leaving[0]) + 2 * (holder[1] == who && !leaving[1]))
#define LEAVING(who) ((holder[0] == who && leaving[0]) + 2 * (holder[1] == who && leaving[1]))
#define ASKED(who) (joined[who] -> LEAVING(who) & ~page[who] : 0) /* as the page says */

/* -------- client */

inline come(me) {
    on[me] = on[me] | page[me];
    assert((on[1] & on[2]) == 0 && (on[1] & on[3]) == 0 && (on[2] & on[3]) == 0)
}

inline say_left(me) {
    if
    :: ASKED(me) != 0 && (going[me] == 0 || MUTANT == LEFT_OF_ONE) ->
        left[me] = left[me] | seen[me]
    :: else
    fi;
    seen[me] = (going[me] == 0 -> 0 : seen[me])
}

inline obey(me) {
    d_step {
        news[me] && link[me] == LINKED ->
        news[me] = false;
        going[me] = on[me] & ~page[me];
        come(me);
        seen[me] = ASKED(me);
        if
        :: MUTANT != LEFT_OF_ONE || going[me] == 0 -> say_left(me)
        :: else
        fi
    }
}

inline leave_cpu(me, cpu) {
    d_step {
        going[me] & BIT(cpu) ->
        on[me] = on[me] & ~BIT(cpu);
        going[me] = going[me] & ~BIT(cpu);
        say_left(me)
    }
}

/* What it has not obeyed by now it never will. */
inline lose_arbiter(me) {
    d_step {
        link[me] == LINKED && !joined[me] ->
        link[me] = ALONE;
        news[me] = false;
        page[me] = 0;
        seen[me] = 0
    }
}

inline say_hello(me) {
    d_step {
        up && link[me] == ALONE ->
        link[me] = ASKING;
        held[me] = (MUTANT == LEAVING_IS_NOT_SAID -> on[me] & ~going[me] : on[me])
    }
}

proctype client(byte me) {
    {
    end:
        do
        :: say_hello(me)
        :: obey(me)
        :: leave_cpu(me, 0)
        :: leave_cpu(me, 1)
        :: lose_arbiter(me)
        od
    } unless { dead[me] }
}

/* -------- arbiter */

inline vacate(who, cpus) {
    holder[0] = (((cpus) & 1) && holder[0] == who -> NOBODY : holder[0]);
    holder[1] = (((cpus) & 2) && holder[1] == who -> NOBODY : holder[1]);
    leaving[0] = leaving[0] && holder[0] != NOBODY;
    leaving[1] = leaving[1] && holder[1] != NOBODY
}
inline give(who, cpus) {
    holder[0] = (((cpus) & 1) && holder[0] == NOBODY -> who : holder[0]);
    holder[1] = (((cpus) & 2) && holder[1] == NOBODY -> who : holder[1])
}

inline save() {
    saved[untold] = GRANTED(untold);
    listed[untold] = true;
    owed[untold] = 0
}
/* With the first page comes WELCOME. */
inline show_grant() {
    page[untold] = GRANTED(untold);
    news[untold] = true;
    link[untold] = LINKED
}
/* The file first. */
inline tell() {
    d_step {
        untold != NOBODY && !told_half ->
        if
        :: MUTANT == SHOWN_BEFORE_SAVED && !dead[untold] -> show_grant()
        :: MUTANT != SHOWN_BEFORE_SAVED -> save()
        :: else
        fi;
        told_half = true
    }
}
inline tell_the_other() {
    d_step {
        told_half ->
        if
        :: MUTANT == SHOWN_BEFORE_SAVED -> save()
        :: MUTANT != SHOWN_BEFORE_SAVED && !dead[untold] -> show_grant()
        :: else
        fi;
        untold = NOBODY;
        told_half = false
    }
}

#define QUIET (up && untold == NOBODY)

/* What was kept for it and it is not on is free; what it is on and nobody else has is its own. */
inline join(who) {
    d_step {
        QUIET && link[who] == ASKING && !dead[who] ->
        if
        :: away[who] -> vacate(who, 3)
        :: else
        fi;
        away[who] = false;
        if
        :: MUTANT != HELD_IS_IGNORED -> give(who, held[who])
        :: else
        fi;
        came = came || (young && held[who] != 0);
        joined[who] = true;
        held[who] = 0;
        untold = who
    }
}

inline hear_left(who) {
    d_step {
        QUIET && left[who] != 0 ->
        gone = (MUTANT == EVERY_LEFT_COUNTS -> LEAVING(who) : left[who] & LEAVING(who));
        vacate(who, gone);
        seen[who] = seen[who] & ~gone; /* if it is given and asked back again, that is a later epoch */
        gone = 0;
        left[who] = 0
    }
}

/* By its pidfd, whether it is back or not. */
inline hear_death(who) {
    d_step {
        QUIET && dead[who] && (joined[who] || (away[who] && MUTANT != KEPT_FOR_THE_DEAD)) &&
        MUTANT != DEATHS_GO_UNSEEN ->
        listed[who] = false;
        saved[who] = 0;
        joined[who] = false;
        away[who] = false;
        vacate(who, 3)
    }
}

inline time_passes() {
    d_step {
        QUIET && (young || came) && owed[1] == 0 && owed[2] == 0 && owed[3] == 0 ->
        young = false;
        came = false
    }
}

#define MOVES (QUIET && (MUTANT == NOBODY_IS_AWAITED || (!came && !(young && (away[1] || away[2] || away[3])))))

#define WANTS(who) (joined[who] -> wants[who] : 0)
#define HAS(who) COUNT(GRANTED(who))
#define NEEDS_ONE(who) (WANTS(who) > 0 && HAS(who) == 0)
#define NEEDS_TWO(who) (WANTS(who) == 2 && HAS(who) == 1)
#define WITH_NONE (NEEDS_ONE(1) + NEEDS_ONE(2) + NEEDS_ONE(3))
#define WITH_ONE (NEEDS_TWO(1) + NEEDS_TWO(2) + NEEDS_TWO(3))
#define COMING ((holder[0] == NOBODY) + (holder[1] == NOBODY) + leaving[0] + leaving[1])

/* Those who lack CPUs first; what nobody lacks is spread. */
inline grant(who, cpu) {
    d_step {
        MOVES && holder[cpu] == NOBODY && joined[who] &&
        (NEEDS_ONE(who) || (WITH_NONE == 0 && (NEEDS_TWO(who) || WITH_ONE == 0))) ->
        holder[cpu] = who;
        untold = who
    }
}

/* Only for others who lack CPUs, and no more than they lack. */
inline ask_back(who, cpu) {
    d_step {
        MOVES && holder[cpu] == who && !leaving[cpu] && joined[who] && MUTANT != NEVER_ASKED_BACK &&
        ((WITH_NONE > COMING && (HAS(who) == 2 || WANTS(who) == 0)) ||
         (WITH_NONE == 0 && WITH_ONE > COMING && (WANTS(who) == 0 || (HAS(who) == 2 && WANTS(who) == 1)))) ->
        leaving[cpu] = MUTANT != GRANTED_BEFORE_LEFT;
        holder[cpu] = (MUTANT == GRANTED_BEFORE_LEFT -> NOBODY : holder[cpu]);
        untold = who
    }
}

proctype arbiter() {
    byte gone;
end:
    do
    :: tell()
    :: tell_the_other()
    :: join(1)
    :: join(2)
    :: join(3)
    :: hear_left(1)
    :: hear_left(2)
    :: hear_left(3)
    :: hear_death(1)
    :: hear_death(2)
    :: hear_death(3)
    :: time_passes()
    :: grant(1, 0)
    :: grant(1, 1)
    :: grant(2, 0)
    :: grant(2, 1)
    :: grant(3, 0)
    :: grant(3, 1)
    :: ask_back(1, 0)
    :: ask_back(1, 1)
    :: ask_back(2, 0)
    :: ask_back(2, 1)
    :: ask_back(3, 0)
    :: ask_back(3, 1)
    od
}

/* -------- who dies, and when */

inline forget(who) {
    owed[who] = (dead[who] -> 0 : owed[who] | LEAVING(who));
    joined[who] = false;
    away[who] = false;
    left[who] = 0;
    held[who] = 0;
    link[who] = (link[who] == ASKING -> ALONE : link[who])
}
/* Also who keeps nothing: it may be on what was asked back from it. */
inline restore(who) {
    if
    :: listed[who] && (!dead[who] || MUTANT == KEPT_FOR_THE_DEAD) &&
       (saved[who] != 0 || MUTANT != HOLDERS_ALONE_ARE_AWAITED) ->
        assert(((saved[who] & 1) == 0 || holder[0] == NOBODY) && ((saved[who] & 2) == 0 || holder[1] == NOBODY));
        away[who] = true;
        give(who, saved[who])
    :: else ->
        listed[who] = false;
        saved[who] = 0
    fi
}

inline arbiter_dies() {
    d_step {
        restarts > 0 && up ->
        restarts--;
        up = false;
        forget(1);
        forget(2);
        forget(3);
        holder[0] = NOBODY;
        holder[1] = NOBODY;
        leaving[0] = false;
        leaving[1] = false;
        untold = NOBODY;
        told_half = false;
        came = false;
        young = false
    }
}
/* It knows the file, and who of those in it lives. */
inline new_arbiter() {
    d_step {
        !up ->
        up = true;
        young = true;
        if
        :: MUTANT != NOTHING_IS_KEPT ->
            restore(1);
            restore(2);
            restore(3)
        :: else
        fi
    }
}

inline die(who) {
    d_step {
        crashes > 0 && !dead[who] ->
        crashes--;
        dead[who] = true;
        on[who] = 0;
        going[who] = 0;
        seen[who] = 0;
        wants[who] = 0;
        news[who] = false;
        page[who] = 0;
        left[who] = 0;
        held[who] = 0;
        owed[who] = 0;
        link[who] = ALONE
    }
}
inline change(who, cpus) {
    d_step {
        changes > 0 && !dead[who] && wants[who] != cpus ->
        changes = (CHANGES == ANY -> ANY : changes - 1);
        wants[who] = cpus
    }
}
#define IS_KNOWN(who) (dead[who] || joined[who])
#define IS_USED(cpu, bit) (!leaving[cpu] && !dead[holder[cpu]] && (on[holder[cpu]] == bit || on[holder[cpu]] == 3))
#define GOES_WITHOUT(who) (wants[who] > 0 && holder[0] != who && holder[1] != who)
#define COULD_HAVE_ONE (holder[0] == holder[1] || wants[holder[0]] == 0 || wants[holder[1]] == 0)
#define COULD_HAVE_BOTH ((wants[holder[0]] == 2 && wants[holder[1]] == 0) || \
                         (wants[holder[1]] == 2 && wants[holder[0]] == 0))
#define ALL_DEAD (dead[1] && dead[2] && dead[3] && holder[0] == NOBODY && holder[1] == NOBODY)
#define SETTLED (ALL_DEAD || (IS_KNOWN(1) && IS_KNOWN(2) && IS_KNOWN(3) && \
                 holder[0] != NOBODY && holder[1] != NOBODY && IS_USED(0, 1) && IS_USED(1, 2) && \
                 !COULD_HAVE_BOTH && \
                 !(COULD_HAVE_ONE && (GOES_WITHOUT(1) || GOES_WITHOUT(2) || GOES_WITHOUT(3)))))

init {
    byte crashes = CRASHES, restarts = RESTARTS, changes = CHANGES;
    atomic {
        wants[1] = 1;
        wants[2] = 1;
        wants[3] = 1;
        run arbiter();
        run client(1);
        run client(2);
        run client(3)
    }
    do
    :: arbiter_dies()
    :: new_arbiter()
    :: die(1)
    :: die(2)
    :: die(3)
    :: change(1, 0)
    :: change(1, 1)
    :: change(1, 2)
    :: change(2, 0)
    :: change(2, 1)
    :: change(2, 2)
    :: change(3, 0)
    :: change(3, 1)
    :: change(3, 2)
    :: up -> break
    od;
    timeout;
    assert(SETTLED)
}

ltl settles { <>[](SETTLED) }
