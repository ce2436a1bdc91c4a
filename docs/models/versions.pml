/* Versions that are to be read by so many: docs/COHERENCE.md, Readers, as processes for Spin.
 *
 * One home whose bytes have RETAIN + 1 slots, a writer that puts VERSIONS versions one after the other and says
 * with each how many are to read it, and READERS readers, each of which gets one version after the other and is
 * registered from the beginning. DEATHS of them die, whenever they like. Each step is one message that is received
 * or sent, or one half of a version that is moved; messages between two arrive in their order.
 *
 * What holds: what a get gives is the version that it asked for, and whole (GIVEN); no slot is written while it
 * is read (WRITTEN); there are never more versions than slots (ROOM); when nothing moves any more the writer has
 * put all, and each reader that lives has got all.
 *
 * MUTANT leaves out one rule, and a run of Spin must then find an error; tests/model/spin has the runs.
 */
#ifndef READERS
#define READERS 2
#endif
#ifndef RETAIN
#define RETAIN 1
#endif
#ifndef VERSIONS
#define VERSIONS 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define EARLIER_HAS_NO_SHARERS 1 /* a grant of an earlier version does not make a sharer */
#define TWO_SLOTS_ALONE 2        /* the next version goes anywhere but where the newest is */
#define UNREAD_IS_UNKNOWN 3      /* who has not read yet is not registered */
#define RETAINS_ALL 4            /* a write does not wait for readers */
#define COUNTED_WHILE_WRITING 5  /* who dies between a grant and the end of the put is waited for */

#define SLOTS (RETAIN + 1)
#define BIT(n) (1 << (n))

mtype = { read_request, has_read, reader_died, invalidated, /* from a reader to the home */
          write_request, readers_request, write_done,       /* from the writer */
          read_grant, invalidate,                           /* from the home to a reader */
          write_grant, write_refused, readers_gone, readers_lost };

chan from_reader[READERS] = [5] of { mtype, byte };
chan to_reader[READERS] = [3] of { mtype, byte };
chan from_writer = [2] of { mtype, byte, byte };
chan to_writer = [2] of { mtype, byte };

byte first_half[SLOTS], second_half[SLOTS];
byte reading[SLOTS]; /* grants of it that have not ended */
byte deaths_left = DEATHS;

/* -------- the home */
byte newest;
byte left[VERSIONS + 1], read_by[VERSIONS + 1], slot_of[VERSIONS + 1];
byte asked[READERS]; /* the version that it waits for */
byte sharers, invalidating, dead;
bool writing, writer_waits;

inline count_unread() {
    unread = 0;
    for (v : 1 .. VERSIONS) { if :: left[v] > 0 -> unread++ :: else fi }
}

inline choose_slot() {
    if
    :: newest == 0 -> slot = 0
    :: newest > 0 && left[newest] == 0 -> slot = slot_of[newest]
    :: else ->
        slot = 0;
        do
        :: taken = (slot == slot_of[newest]);
           for (v : 1 .. VERSIONS) {
               if
               :: MUTANT != TWO_SLOTS_ALONE && left[v] > 0 && slot_of[v] == slot -> taken = true
               :: else
               fi
           }
           if :: taken -> slot++ :: else -> break fi
        od
    fi;
    assert(slot < SLOTS) /* ROOM */
}

/* Those whose version is there. */
inline answer_reads() {
    for (r : 0 .. READERS - 1) {
        if
        :: asked[r] > 0 && !writing && (asked[r] == newest || left[asked[r]] > 0) ->
            if
            :: MUTANT == EARLIER_HAS_NO_SHARERS && asked[r] != newest
            :: else -> sharers = sharers | BIT(r)
            fi;
            reading[slot_of[asked[r]]]++;
            to_reader[r]!read_grant(slot_of[asked[r]]);
            asked[r] = 0
        :: else
        fi
    }
}

inline answer_writer() {
    if
    :: writer_waits ->
        count_unread();
        if
        :: dead > 0 -> to_writer!readers_lost(dead); dead = 0; writer_waits = false
        :: dead == 0 && unread <= RETAIN -> to_writer!readers_gone(0); writer_waits = false
        :: else
        fi
    :: else
    fi
}

active proctype home() {
    byte v, r, slot, unread, n;
    bool taken;
end:
    do
    :: from_writer?write_request(v, n) -> atomic {
           count_unread();
           if
           :: dead > 0 || (unread > RETAIN && MUTANT != RETAINS_ALL) -> to_writer!write_refused(0)
           :: else ->
               choose_slot();
               writing = true;
               invalidating = sharers;
               sharers = 0;
               for (r : 0 .. READERS - 1) {
                   if :: invalidating & BIT(r) -> to_reader[r]!invalidate(0) :: else fi
               }
               if :: invalidating == 0 -> to_writer!write_grant(slot) :: else fi
           fi
       }
    :: from_writer?readers_request(v, n) -> atomic { writer_waits = true; answer_writer() }
    :: from_writer?write_done(v, n) -> atomic {
           newest = v;
           /* The writer did not know of those who died meanwhile. */
           if
           :: MUTANT == COUNTED_WHILE_WRITING || n <= dead -> left[v] = (MUTANT == COUNTED_WHILE_WRITING -> n : 0)
           :: else -> left[v] = n - dead
           fi;
           slot_of[v] = slot;
           writing = false;
           answer_reads()
       }
    :: from_reader[0]?read_request(v) -> atomic { asked[0] = v; answer_reads() }
    :: from_reader[0]?has_read(v) -> atomic { r = 0; goto counted }
    :: from_reader[0]?reader_died(v) -> atomic { r = 0; goto died }
    :: from_reader[0]?invalidated(v) -> atomic { r = 0; goto answered }
#if READERS > 1
    :: from_reader[1]?read_request(v) -> atomic { asked[1] = v; answer_reads() }
    :: from_reader[1]?has_read(v) -> atomic { r = 1; goto counted }
    :: from_reader[1]?reader_died(v) -> atomic { r = 1; goto died }
    :: from_reader[1]?invalidated(v) -> atomic { r = 1; goto answered }
#endif
#if READERS > 2
    :: from_reader[2]?read_request(v) -> atomic { asked[2] = v; answer_reads() }
    :: from_reader[2]?has_read(v) -> atomic { r = 2; goto counted }
    :: from_reader[2]?reader_died(v) -> atomic { r = 2; goto died }
    :: from_reader[2]?invalidated(v) -> atomic { r = 2; goto answered }
#endif
    od;
counted:
    atomic {
        if
        :: left[v] > 0 -> left[v] = left[v] - 1; read_by[v] = read_by[v] | BIT(r)
        :: else
        fi;
        answer_writer();
        v = 0; r = 0;
        goto end
    }
died:
    atomic {
        asked[r] = 0;
        for (v : 1 .. VERSIONS) {
            if
            :: left[v] > 0 && !(read_by[v] & BIT(r)) -> left[v] = left[v] - 1
            :: else
            fi
        }
        dead++;
        answer_writer();
        v = 0; r = 0;
        goto end
    }
answered:
    atomic {
        invalidating = invalidating & ~BIT(r);
        if :: writing && invalidating == 0 -> to_writer!write_grant(slot) :: else fi;
        v = 0; r = 0;
        goto end
    }
}

/* -------- a client that reads, and its rank's caching agent */
#define IDLE 0
#define ASKED 1
#define FETCHING 2

proctype reader(byte self) {
    byte next = 1, slot, half, state = IDLE;
    bool is_dead, owes;
end:
    do
    :: state == IDLE && !is_dead && next <= VERSIONS -> atomic { from_reader[self]!read_request(next); state = ASKED }
    :: to_reader[self]?read_grant(slot) -> state = FETCHING
    :: to_reader[self]?invalidate(_) -> atomic {
           if
           :: state == FETCHING -> owes = true
           :: else -> from_reader[self]!invalidated(0)
           fi
       }
    :: state == FETCHING && half == 0 -> atomic { assert(first_half[slot] == next); half = 1 } /* GIVEN */
    :: state == FETCHING && half == 1 -> atomic {
           assert(second_half[slot] == next); /* GIVEN */
           reading[slot]--;
           half = 0;
           slot = 0;
           state = IDLE;
           if :: !is_dead -> from_reader[self]!has_read(next); next++ :: else fi;
           if :: owes -> from_reader[self]!invalidated(0); owes = false :: else fi
       }
    :: !is_dead && deaths_left > 0 -> atomic {
           deaths_left--;
           is_dead = true;
           if
           :: MUTANT == UNREAD_IS_UNKNOWN && next == 1
           :: else -> from_reader[self]!reader_died(0)
           fi
       }
    :: !is_dead && next > VERSIONS && state == IDLE && len(to_reader[self]) == 0 && deaths_left == 0 -> goto got_all
    od;
got_all:
end_all:
    do
    :: to_reader[self]?invalidate(_) -> from_reader[self]!invalidated(0)
    od
}

proctype writer() {
    byte version = 1, readers = READERS, slot, lost;
    do
    :: version <= VERSIONS ->
        from_writer!write_request(version, 0);
        if
        :: to_writer?write_grant(slot) ->
            assert(reading[slot] == 0); /* WRITTEN */
            first_half[slot] = version;
            assert(reading[slot] == 0);
            atomic {
                second_half[slot] = version;
                from_writer!write_done(version, readers);
                version++
            }
        :: to_writer?write_refused(_) ->
            from_writer!readers_request(0, 0);
            if
            :: to_writer?readers_gone(_)
            :: to_writer?readers_lost(lost) -> readers = readers - lost
            fi
        fi
    :: else -> break
    od
}

init {
    byte r;
    atomic {
        for (r : 0 .. READERS - 1) { run reader(r) }
        run writer()
    }
    /* Who lives has got all: the versions that are left are nobody's. */
}
