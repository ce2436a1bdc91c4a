/* How copies stay coherent: docs/COHERENCE.md as processes, for Spin.
 *
 * A range of HOMES pieces, each of which has a home, and RANKS caching agents. Each of these gets the range GETS times,
 * puts it PUTS times (PUTTERS of them do), and drops a copy EVICTIONS times, in any order and several at once,
 * as clients of one rank do. Each step is one message that is received or sent, or one piece whose bytes are
 * moved; messages between two agents arrive in their order. Memory and copies are versions: a put writes one
 * more than all before it.
 *
 * What holds: what a get gives is of one moment, and no older than what was put before it began (GIVEN); there
 * is no copy anywhere while bytes are written (WRITTEN); when nothing moves any more everybody has what it
 * asked for, and homes know of the copies that other ranks have, and of no others (the process `rest`).
 *
 * MUTANT leaves out one rule, and a run of Spin must then find an error; tests/model/spin has the runs. Left
 * out here: tags and readers, which hold no grant, copies of one's own, and ranks that go.
 */
#ifndef HOMES
#define HOMES 2
#endif
#ifndef RANKS
#define RANKS 2
#endif
#ifndef PUTTERS
#define PUTTERS RANKS
#endif
#ifndef GETS
#define GETS 2
#endif
#ifndef PUTS
#define PUTS 1
#endif
#ifndef EVICTIONS
#define EVICTIONS 1
#endif
#ifndef DELEGATIONS
#define DELEGATIONS 0 /* 1: a grant may be one of all reads to come, until the next write */
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define ANSWERED_WHILE_FETCHING 1 /* an invalidation is answered though a copy is being fetched */
#define READS_PASS_WRITES 2       /* a home grants reads while a write is under way */
#define GRANTED_UNANSWERED 3      /* a home grants a write before the sharers have answered */
#define SHARERS_ARE_KEPT 4        /* nobody tells a home that a copy is gone */
#define UNSHARED_WHILE_FETCHING 5 /* a copy is gone is told though another one is on its way */
#define STALE_IS_FOUND 6          /* what was invalidated while it was fetched is found by later gets */
#define ANY_ORDER 7               /* puts ask the homes in the other order */
#define KEPT_UNTOLD 8             /* a put leaves a copy that the homes are not told of */
#define DELEGATION_OUTLIVES_WRITES 9 /* who may read until the next write goes on */

#define LINK(rank, home) ((rank) * HOMES + (home))
#define BIT(n) (1 << (n))
#define OTHER(home, rank) (rank == home -> 0 : BIT(rank))

mtype = { read_request, write_request, write_done, invalidated, unshare, /* to a home */
          read_grant, write_grant, invalidate };                        /* to a caching agent */

/* With a message to a home: whether the writer keeps a copy. With a grant: the slot of the get. */
chan to_home[RANKS * HOMES] = [8] of { mtype, byte };
chan to_agent[RANKS * HOMES] = [8] of { mtype, byte };

byte memory[HOMES];
byte last_put; /* the version of the last put that has ended */

/* -------- homes: each on the rank of its number, which it never notes, and asks before each write */

byte sharers[HOMES];
bool writing[HOMES]; /* a write has begun */
byte writer[HOMES];
byte awaited[HOMES]; /* who has still to answer to it */
chan waiting[HOMES] = [RANKS * 3] of { bool, byte, byte }; /* is it a write, whose, which slot */

inline grant_write(home) {
    to_agent[LINK(writer[home], home)] ! write_grant, 0
}

inline begin_write(home, rank) {
    writing[home] = true;
    writer[home] = rank;
    awaited[home] = sharers[home] | BIT(home);
    sharers[home] = 0;
    other = 0;
    do
    :: other < RANKS ->
        if
        :: (awaited[home] & BIT(other)) != 0 -> to_agent[LINK(other, home)] ! invalidate, 0
        :: else
        fi;
        other++
    :: else -> break
    od;
    if
    :: awaited[home] == 0 || MUTANT == GRANTED_UNANSWERED -> grant_write(home)
    :: else
    fi
}

inline begin_read(home, rank, slot) {
    sharers[home] = sharers[home] | OTHER(home, rank);
    to_agent[LINK(rank, home)] ! read_grant, slot
}

/* Who waits is admitted in order: a write when all before it have ended, a read when all writes before it. */
proctype Home(byte self) {
    byte rank, other, slot;
    bool write;
end:
    do
    :: atomic {
        !writing[self] && nempty(waiting[self]) ->
        waiting[self] ? write, rank, slot;
        if
        :: write -> begin_write(self, rank)
        :: else -> begin_read(self, rank, slot)
        fi;
        rank = 0; slot = 0; write = false; other = 0
       }
    :: atomic {
        MUTANT == READS_PASS_WRITES && writing[self] && waiting[self] ?? [false, _, _] ->
        waiting[self] ?? false, rank, slot;
        begin_read(self, rank, slot);
        rank = 0; slot = 0
       }
    od
}

/* What one rank tells a home. */
proctype Inbox(byte self; byte rank) {
    byte slot, with;
end:
    do
    :: atomic { to_home[LINK(rank, self)] ? read_request, slot -> waiting[self] ! false, rank, slot; slot = 0 }
    :: atomic { to_home[LINK(rank, self)] ? write_request, _ -> waiting[self] ! true, rank, 0 }
    :: atomic {
        to_home[LINK(rank, self)] ? write_done, with ->
        writing[self] = false;
        if
        :: with && MUTANT != KEPT_UNTOLD -> sharers[self] = sharers[self] | OTHER(self, rank)
        :: else
        fi;
        with = 0
       }
    :: atomic {
        to_home[LINK(rank, self)] ? invalidated, _ ->
        awaited[self] = awaited[self] & ~BIT(rank);
        if
        :: awaited[self] == 0 && MUTANT != GRANTED_UNANSWERED -> grant_write(self)
        :: else
        fi
       }
    :: atomic { to_home[LINK(rank, self)] ? unshare, _ -> sharers[self] = sharers[self] & ~BIT(rank) }
    od
}

/* -------- caching agents */

/* Where copies are: two that are got, and one that a put has left. A get that is not found by later ones any
 * more goes on (GONE), and another one may begin beside it. */
#define SLOTS 3
#define OF_PUT 2
#define AT(rank, slot) ((rank) * SLOTS + (slot))
#define NONE 0
#define FETCHING 1
#define VALID 2
#define GONE 3
byte copy[RANKS * SLOTS];
byte version[RANKS * SLOTS * HOMES];
#define VERSION(rank, slot, home) version[AT(rank, slot) * HOMES + (home)]
byte granted[RANKS * SLOTS]; /* of a get: by how many homes */
byte moved[RANKS * SLOTS];   /* and how many pieces are there */
byte since[RANKS * SLOTS];   /* and what had been put when the last one who waits for it asked */
byte answers[RANKS * HOMES]; /* the gets for which an answer to that home waits */
byte delegated[RANKS];        /* the other ranks' homes that need not be asked for reads */

byte put_step[RANKS]; /* 0: none; from 1 on: asks a home; then: writes a piece */
byte put_version[RANKS];
byte gets_left[RANKS];
byte puts_left[RANKS];
byte evictions_left[RANKS];

#define IS_GET(rank, slot) (copy[AT(rank, slot)] == FETCHING || copy[AT(rank, slot)] == GONE)
#define HAS(rank, state) (copy[AT(rank, 0)] == state || copy[AT(rank, 1)] == state || copy[AT(rank, 2)] == state)
#define GETTING(rank) (IS_GET(rank, 0) || IS_GET(rank, 1))
#define DELEGATED(rank, home) ((delegated[rank] & BIT(home)) != 0)
#define HAS_READ(rank, slot, home) (IS_GET(rank, slot) && granted[AT(rank, slot)] > home)
/* Puts ask the homes in ascending order. */
#define PUT_HOME(step) (MUTANT == ANY_ORDER -> HOMES - (step) : (step) - 1)

#define GIVEN(rank, slot, asked) \
    assert(VERSION(rank, slot, 0) == VERSION(rank, slot, HOMES - 1) && VERSION(rank, slot, 0) >= asked)
#define WRITTEN assert(!HAS(0, VALID) && !HAS(RANKS - 1, VALID) && !HAS(1, VALID))

/* What is gone the homes need not know of, unless another copy is there or on its way. */
inline tell_gone(rank) {
    if
    :: MUTANT == SHARERS_ARE_KEPT
    :: else ->
        if
        :: !HAS(rank, VALID) && (!GETTING(rank) || MUTANT == UNSHARED_WHILE_FETCHING) ->
            if
            :: rank != 0 && !DELEGATED(rank, 0) -> to_home[LINK(rank, 0)] ! unshare, 0
            :: else
            fi;
            if
            :: HOMES > 1 && rank != HOMES - 1 && !DELEGATED(rank, HOMES - 1) -> to_home[LINK(rank, HOMES - 1)] ! unshare, 0
            :: else
            fi
        :: else
        fi
    fi
}

inline forget(rank, slot) {
    copy[AT(rank, slot)] = NONE;
    VERSION(rank, slot, 0) = 0;
    VERSION(rank, slot, HOMES - 1) = 0;
    granted[AT(rank, slot)] = 0;
    moved[AT(rank, slot)] = 0;
    since[AT(rank, slot)] = 0
}

/* The next home that is to be asked, if any. */
inline ask(rank, slot) {
    do
    :: granted[AT(rank, slot)] < HOMES && DELEGATED(rank, granted[AT(rank, slot)]) -> granted[AT(rank, slot)]++
    :: else -> break
    od;
    if
    :: granted[AT(rank, slot)] < HOMES -> to_home[LINK(rank, granted[AT(rank, slot)])] ! read_request, slot
    :: else
    fi
}

inline begin_get(rank, slot) {
    copy[AT(rank, slot)] = FETCHING;
    since[AT(rank, slot)] = last_put;
    ask(rank, slot)
}

/* The last piece of a get is there. */
inline end_get(rank, slot) {
    GIVEN(rank, slot, since[AT(rank, slot)]);
    home = 0;
    stays = copy[AT(rank, slot)] == FETCHING;
    if
    :: stays ->
        copy[AT(rank, slot)] = VALID;
        granted[AT(rank, slot)] = 0;
        moved[AT(rank, slot)] = 0;
        since[AT(rank, slot)] = 0
    :: else -> forget(rank, slot)
    fi;
    do
    :: home < HOMES ->
        if
        :: answers[LINK(rank, home)] == BIT(slot) -> to_home[LINK(rank, home)] ! invalidated, 0
        :: else
        fi;
        answers[LINK(rank, home)] = answers[LINK(rank, home)] & ~BIT(slot);
        home++
    :: else -> break
    od;
    home = 0;
    if
    :: !stays -> tell_gone(rank)
    :: else
    fi;
    stays = false
}

inline be_invalidated(rank, from) {
    if
    :: MUTANT != DELEGATION_OUTLIVES_WRITES -> delegated[rank] = delegated[rank] & ~BIT(from)
    :: else
    fi;
    slot = 0;
    lost = false;
    do
    :: slot < SLOTS ->
        if
        :: copy[AT(rank, slot)] == VALID -> forget(rank, slot); lost = true
        :: HAS_READ(rank, slot, from) ->
            if
            :: MUTANT != ANSWERED_WHILE_FETCHING ->
                answers[LINK(rank, from)] = answers[LINK(rank, from)] | BIT(slot)
            :: else
            fi;
            if
            :: MUTANT != STALE_IS_FOUND -> copy[AT(rank, slot)] = GONE
            :: else
            fi
        :: else
        fi;
        slot++
    :: else -> break
    od;
    slot = 0;
    if
    :: lost -> tell_gone(rank)
    :: else
    fi;
    lost = false;
    if
    :: answers[LINK(rank, from)] == 0 -> to_home[LINK(rank, from)] ! invalidated, 0
    :: else
    fi
}

inline go_on_putting(rank) {
    put_step[rank]++;
    if
    :: put_step[rank] <= HOMES -> to_home[LINK(rank, PUT_HOME(put_step[rank]))] ! write_request, 0
    :: else -> WRITTEN; put_version[rank] = memory[0] + 1
    fi
}

inline granted_by(rank, slot) {
    if
    :: DELEGATIONS && granted[AT(rank, slot)] != rank -> delegated[rank] = delegated[rank] | BIT(granted[AT(rank, slot)])
    :: true
    fi;
    granted[AT(rank, slot)]++;
    ask(rank, slot);
    slot = 0
}

inline end_put(rank, keeps) {
    last_put = put_version[rank];
    if
    :: keeps ->
        assert(copy[AT(rank, OF_PUT)] == NONE);
        copy[AT(rank, OF_PUT)] = VALID;
        VERSION(rank, OF_PUT, 0) = last_put;
        VERSION(rank, OF_PUT, HOMES - 1) = last_put
    :: else
    fi;
    to_home[LINK(rank, 0)] ! write_done, keeps;
    if
    :: HOMES > 1 -> to_home[LINK(rank, HOMES - 1)] ! write_done, keeps
    :: else
    fi;
    put_step[rank] = 0;
    put_version[rank] = 0
}

/* A hit is one step. */
inline hit(rank) {
    if
    :: copy[AT(rank, 0)] == VALID -> GIVEN(rank, 0, last_put)
    :: copy[AT(rank, 1)] == VALID -> GIVEN(rank, 1, last_put)
    :: copy[AT(rank, 2)] == VALID -> GIVEN(rank, 2, last_put)
    fi
}

proctype Agent(byte self) {
    byte slot, home;
    bool stays, lost;
end:
    do
    /* A client gets the range: a hit, one that waits for a get under way, or a miss. */
    :: atomic {
        gets_left[self] > 0 && !(copy[AT(self, 0)] == GONE && copy[AT(self, 1)] == GONE) ->
        if
        :: HAS(self, VALID) -> gets_left[self]--; hit(self)
        :: !HAS(self, VALID) && copy[AT(self, 0)] == FETCHING -> gets_left[self]--; since[AT(self, 0)] = last_put
        :: !HAS(self, VALID) && copy[AT(self, 1)] == FETCHING -> gets_left[self]--; since[AT(self, 1)] = last_put
        :: !HAS(self, VALID) && !HAS(self, FETCHING) && copy[AT(self, 0)] == NONE ->
            gets_left[self]--;
            begin_get(self, 0)
        :: !HAS(self, VALID) && !HAS(self, FETCHING) && copy[AT(self, 0)] == GONE && copy[AT(self, 1)] == NONE ->
            gets_left[self]--;
            begin_get(self, 1)
        fi
       }
    :: atomic {
        puts_left[self] > 0 && put_step[self] == 0 ->
        puts_left[self]--;
        go_on_putting(self)
       }
    /* Room is made for something else. */
    :: atomic {
        evictions_left[self] > 0 && HAS(self, VALID) ->
        evictions_left[self]--;
        if
        :: copy[AT(self, 0)] == VALID -> forget(self, 0)
        :: copy[AT(self, 1)] == VALID -> forget(self, 1)
        :: copy[AT(self, 2)] == VALID -> forget(self, 2)
        fi;
        tell_gone(self)
       }
    /* Bytes are moved, a piece at a time. */
    :: d_step {
        IS_GET(self, 0) && granted[AT(self, 0)] == HOMES && moved[AT(self, 0)] < HOMES ->
        VERSION(self, 0, moved[AT(self, 0)]) = memory[moved[AT(self, 0)]];
        moved[AT(self, 0)]++
       }
    :: d_step {
        IS_GET(self, 1) && granted[AT(self, 1)] == HOMES && moved[AT(self, 1)] < HOMES ->
        VERSION(self, 1, moved[AT(self, 1)]) = memory[moved[AT(self, 1)]];
        moved[AT(self, 1)]++
       }
    :: atomic { IS_GET(self, 0) && moved[AT(self, 0)] == HOMES -> end_get(self, 0) }
    :: atomic { IS_GET(self, 1) && moved[AT(self, 1)] == HOMES -> end_get(self, 1) }
    :: d_step {
        put_step[self] > HOMES && put_step[self] <= 2 * HOMES ->
        memory[put_step[self] - HOMES - 1] = put_version[self];
        put_step[self]++
       }
    :: atomic { put_step[self] == 2 * HOMES + 1 -> end_put(self, 0) }
    :: atomic { put_step[self] == 2 * HOMES + 1 -> end_put(self, 1) }
    /* Messages. */
    :: atomic { to_agent[LINK(self, 0)] ? read_grant, slot -> granted_by(self, slot) }
    :: atomic { to_agent[LINK(self, HOMES - 1)] ? read_grant, slot -> granted_by(self, slot) }
    :: atomic { to_agent[LINK(self, 0)] ? write_grant, _ -> go_on_putting(self) }
    :: atomic { to_agent[LINK(self, HOMES - 1)] ? write_grant, _ -> go_on_putting(self) }
    :: atomic { to_agent[LINK(self, 0)] ? invalidate, _ -> be_invalidated(self, 0) }
    :: atomic { to_agent[LINK(self, HOMES - 1)] ? invalidate, _ -> be_invalidated(self, HOMES - 1) }
    od
}

/* When nothing moves any more. */
proctype rest() {
    byte rank;
    timeout ->
    d_step {
        do
        :: rank < RANKS ->
            assert(gets_left[rank] == 0 && puts_left[rank] == 0 && put_step[rank] == 0 && !GETTING(rank));
            assert(((sharers[0] & BIT(rank)) != 0) == (rank != 0 && (HAS(rank, VALID) || DELEGATED(rank, 0))));
            assert(((sharers[HOMES - 1] & BIT(rank)) != 0) == 
                   (rank != HOMES - 1 && (HAS(rank, VALID) || DELEGATED(rank, HOMES - 1))));
            rank++
        :: else -> break
        od;
        assert(!writing[0] && !writing[HOMES - 1] && empty(waiting[0]) && empty(waiting[HOMES - 1]))
    }
}

init {
    atomic {
        byte rank;
        do
        :: rank < RANKS ->
            gets_left[rank] = GETS;
            evictions_left[rank] = EVICTIONS;
            if
            :: rank < PUTTERS -> puts_left[rank] = PUTS
            :: else
            fi;
            run Agent(rank);
            run Inbox(0, rank);
            if
            :: HOMES > 1 -> run Inbox(HOMES - 1, rank)
            :: else
            fi;
            rank++
        :: else -> break
        od;
        run Home(0);
        if
        :: HOMES > 1 -> run Home(HOMES - 1)
        :: else
        fi;
        run rest()
    }
}
