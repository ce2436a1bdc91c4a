/* How a CPU goes from process to process without the arbiter: docs/HANDOVER.md as processes, for Spin.
 *
 * One CPU, CLIENTS clients of one user, and the arbiter. Each statement, and each d_step, is one access to a
 * shared word or one thing that a lock of the process makes indivisible. Pages are those of a run of the
 * arbiter: a new arbiter makes new ones, and a client reads the old ones until it sees that the old arbiter is
 * gone; then it is alone until it has registered again. What the arbiter saves may be lost with it.
 * CRASHES clients die anywhere; FENCES are what the arbiter does to clients that do not leave in time;
 * RESTARTS kills the arbiter anywhere and starts another. GRANTS bounds the generations.
 *
 * What holds: two clients are never on the CPU (the assertion in come()); the CPU is found again and again
 * (the claim `found`): free, lent by a holder that knows of it, or its holder is on it; no reader of a grant page obeys a grant that nobody
 * gave (the assertions in grant_page.pml).
 *
 * MUTANT leaves out one rule, and a run of Spin must then find an error; tests/model/spin has the runs. The
 * grant page itself, which is taken for one word here, is in grant_page.pml.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef GRANTS
#define GRANTS 3
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef FENCES
#define FENCES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define TAKER_DOES_NOT_LOOK_AGAIN 1  /* the taker does not look at its lender word after the release word */
#define ARBITER_READS_FIRST 2        /* the release word is read before the lender words are closed */
#define HANDOVERS_COUNT_TWICE 3      /* a hand-over that became a grant is taken again */
#define LAST_NAME_ONLY 4             /* the arbiter honours only whom it named last */
#define PLAIN_RECLAIM 5              /* the lender takes back without compare-and-swap */
#define PLAIN_TAKE 6                 /* the arbiter takes what is lent without compare-and-swap */
#define LEFT_WHILE_TAKEN 7           /* a client says that it left while what it took is not confirmed */
#define OLD_PAGES_WHILE_REGISTERING 8 /* a client uses the old arbiter's pages after it said what it holds */
#define DEATHS_GO_UNSEEN 9           /* the arbiter does not look for clients that died */
#define STALE_LEFT_COUNTS 10         /* the arbiter heeds a LEFT of an epoch that is over */
#define LEFT_WHILE_PASSING 11        /* the same of what it passes on unconfirmed, and may take back */

#define TAKEN_BACK_UNSEEN 12         /* what is passed on is taken back without a look at the lender word */
#define LENT_IS_STILL_OURS 15        /* without an arbiter, what was lent is taken back without a look */
#define CLAIMS_ARE_FORGOTTEN 14      /* who held what is kept for another has lost it for good */
#define LEFT_FOR_EVER 16             /* a CPU that was given again before it was left stays lent, unknown to its holder */
#define CLAIMED_THOUGH_FENCED 13     /* after a restart a client claims a CPU that it was kept off by force */

/* The words {generation, client}. */
#define WORD(generation, who) ((generation) * 8 + (who))
#define GENERATION(word) ((word) >> 3)
#define WHO(word) ((word) & 7)
#define NOBODY 0
#define LENT 6
#define TAKEN_BACK 7
#define MOST 3 /* clients; those that are not there are dead */
#define AT(era, client) ((era) * (MOST + 1) + (client))
#define PAGES ((RESTARTS + 1) * (MOST + 1))

/* What a client believes: ArbiterClient::State. */
#define ABSENT 0
#define HELD 1
#define TAKEN 2
#define LENDING 3
#define LEAVING 4
#define PASSING 5 /* was TAKEN; goes on to the next as soon as it is confirmed */

/* Grant pages; the arbiter writes. */
byte successor[PAGES];
byte lender[PAGES];
bool mask[PAGES];
bool asked[PAGES]; /* heddle_grant_page.leaving */
/* Client pages; the client writes, and the arbiter by compare-and-swap. */
byte released[PAGES];
/* Messages: LEFT, and the answer to HELLO. */
bool left[MOST + 1];
bool joined[MOST + 1];

byte belief[MOST + 1];
bool on[MOST + 1];     /* its threads are on the CPU */
bool fenced[MOST + 1]; /* its threads are kept off the CPU until it looks at its grant */
bool dead[MOST + 1];

/* The arbiter that runs: which, and whether it listens already. Then its ledger. */
byte era;
byte listening;
byte holder;
byte generation;
byte named;
bool honoured[MOST + 1];
bool ended[MOST + 1]; /* was named for a grant that has ended, and has not been shown that */
bool leaving;
bool claims[MOST + 1]; /* says that it holds the CPU that is kept for another */
byte fences = FENCES;
byte saved; /* whose the CPU is in the file that outlives the arbiter */

#define ALL_JOINED ((joined[1] || dead[1]) && (joined[2] || dead[2]) && (joined[3] || dead[3]))

inline come(me) {
    on[me] = true;
    assert(on[1] + on[2] + on[3] == 1)
}

/* -------- client: each part is what ArbiterClient does under its mutex */

#define FREE_WORD(who) released[AT(link, who)]
#define UNCONFIRMED(me) (belief[me] == TAKEN || belief[me] == PASSING)

/* Its threads are off the CPU; then the word says whose it is. */
inline release_cpu(me) {
    d_step {
        belief[me] == HELD || belief[me] == LEAVING ->
        on[me] = false;
        word = successor[AT(link, me)]
    }
    d_step {
        FREE_WORD(me) = (WHO(word) == NOBODY -> WORD(GENERATION(word), LENT) : word);
        belief[me] = (WHO(word) != NOBODY || belief[me] == LEAVING -> ABSENT : LENDING);
        word = 0
    }
}

#if MUTANT == PLAIN_RECLAIM
inline take_back_word(me) {
    atomic { belief[me] == LENDING -> word = FREE_WORD(me) }
    d_step {
        if
        :: WHO(word) == LENT -> FREE_WORD(me) = WORD(GENERATION(word), NOBODY); word = 1
        :: else -> belief[me] = ABSENT; word = 0
        fi
    }
}
#else
inline take_back_word(me) {
    d_step {
        belief[me] == LENDING ->
        if
        :: WHO(FREE_WORD(me)) == LENT -> FREE_WORD(me) = WORD(GENERATION(FREE_WORD(me)), NOBODY); word = 1
        :: else -> belief[me] = ABSENT
        fi
    }
}
#endif

inline reclaim_cpu(me) {
    take_back_word(me);
    d_step {
        if
        :: word == 1 && mask[AT(link, me)] ->
            belief[me] = HELD;
            if
            :: !fenced[me] -> come(me)
            :: else
            fi
        :: word == 1 && !mask[AT(link, me)] -> /* asked back meanwhile */
            FREE_WORD(me) = WORD(GENERATION(FREE_WORD(me)), LENT);
            belief[me] = ABSENT
        :: else
        fi;
        word = 0
    }
}

/* A hand-over counts once: one that became a grant is as old as that grant. */
inline take_cpu(me) {
    atomic {
        belief[me] == ABSENT && WHO(lender[AT(link, me)]) != NOBODY &&
        (MUTANT == HANDOVERS_COUNT_TWICE ||
         GENERATION(lender[AT(link, me)]) > GENERATION(successor[AT(link, me)])) ->
        word = lender[AT(link, me)]
    }
    theirs = FREE_WORD(WHO(word));
    d_step {
        if
        :: theirs == WORD(GENERATION(word), me) &&
           (MUTANT == TAKER_DOES_NOT_LOOK_AGAIN || lender[AT(link, me)] == word) ->
            belief[me] = TAKEN;
            taken = GENERATION(word);
            come(me)
        :: else
        fi;
        word = 0;
        theirs = 0
    }
}

/* What is not confirmed has no successor yet: it waits here, and may be taken back. */
inline pass_on(me) {
    d_step { belief[me] == TAKEN -> belief[me] = PASSING; on[me] = false }
}
inline take_back_passing(me) {
    d_step {
        belief[me] == PASSING &&
        (MUTANT == TAKEN_BACK_UNSEEN || GENERATION(lender[AT(link, me)]) == taken) ->
        belief[me] = TAKEN;
        if
        :: !fenced[me] -> come(me)
        :: else
        fi
    }
}

/* The lenders first: the arbiter shows the grant before it takes the lender away. */
inline look_at_lender(me) {
    atomic { UNCONFIRMED(me) -> denied = GENERATION(lender[AT(link, me)]) != taken }
}

/* ArbiterClient::obey, with a grant that was read whole. */
inline obey(me) {
    if
    :: MUTANT != LEFT_FOR_EVER && mask[AT(link, me)] && belief[me] == ABSENT &&
       FREE_WORD(me) == WORD(GENERATION(successor[AT(link, me)]), LENT) ->
        /* Left as it was asked back, and given again before we looked. */
        FREE_WORD(me) = WORD(GENERATION(successor[AT(link, me)]), NOBODY);
        belief[me] = HELD;
        come(me)
    :: mask[AT(link, me)] && (WHO(FREE_WORD(me)) == NOBODY ||
                              GENERATION(FREE_WORD(me)) != GENERATION(successor[AT(link, me)])) ->
        if
        :: belief[me] == PASSING ->
            word = successor[AT(link, me)];
            FREE_WORD(me) = (WHO(word) == NOBODY -> WORD(GENERATION(word), LENT) : word);
            belief[me] = (WHO(word) == NOBODY -> LENDING : ABSENT);
            word = 0
        :: else ->
            belief[me] = HELD;
            come(me)
        fi
    :: !mask[AT(link, me)] && (belief[me] == HELD || (belief[me] == TAKEN && denied)) -> belief[me] = LEAVING
    :: !mask[AT(link, me)] && (belief[me] == LENDING || (belief[me] == PASSING && denied)) ->
        belief[me] = ABSENT
    :: else
    fi;
    denied = false;
    fenced[me] = false;
    taken = (UNCONFIRMED(me) -> taken : 0);
    if
    :: asked[AT(link, me)] && belief[me] != LEAVING && (MUTANT == LEFT_WHILE_TAKEN || belief[me] != TAKEN) &&
       (MUTANT == LEFT_WHILE_PASSING || belief[me] != PASSING) ->
        left[me] = true
    :: else
    fi
}

inline keep(who) {
    holder = who;
    generation++;
    successor[AT(listening, who)] = WORD(generation, NOBODY);
    mask[AT(listening, who)] = true;
    saved = who
}
#define CLAIMANT(who) (holder == NOBODY && claims[who] && !dead[who] -> who : holder)
inline take_claimant() {
    holder = CLAIMANT(1);
    holder = CLAIMANT(2);
    holder = CLAIMANT(3);
    claims[1] = claims[1] && holder == NOBODY;
    claims[2] = claims[2] && holder == NOBODY;
    claims[3] = claims[3] && holder == NOBODY
}
/* The arbiter's answer to HELLO: who says that it holds a CPU that nobody else does keeps it. Where the CPU is
 * kept for another, who is not back yet, it may have been handed over: it is the claimant's as soon as it is
 * free. */
inline join(me, holds) {
    if
    :: holds && (holder == NOBODY || holder == me) -> keep(me)
    :: holds && holder != NOBODY && holder != me ->
        claims[me] = !joined[holder] && MUTANT != CLAIMS_ARE_FORGOTTEN
    :: !holds && holder == me ->
        holder = NOBODY;
        saved = NOBODY;
        take_claimant();
        if
        :: holder != NOBODY -> keep(holder)
        :: else
        fi
    :: else
    fi;
    joined[me] = true
}

/* Without an arbiter: what was taken is ours, what was lent and nobody has taken may be taken back, and what a
 * fence has ended is over. Then the old pages are looked at no more. */
#define FENCED_OFF(me) (MUTANT != CLAIMED_THOUGH_FENCED && WHO(successor[AT(link, me)]) == TAKEN_BACK && \
                        (!UNCONFIRMED(me) || GENERATION(successor[AT(link, me)]) > taken))
#define LENT_AND_TAKEN(me) (MUTANT != LENT_IS_STILL_OURS && belief[me] == LENDING && WHO(FREE_WORD(me)) != LENT)

inline let_go(me) {
    belief[me] = (FENCED_OFF(me) || LENT_AND_TAKEN(me) -> ABSENT : belief[me]);
    belief[me] = (belief[me] == TAKEN -> HELD : (belief[me] == PASSING -> LENDING : belief[me]));
    taken = 0
}
inline lend_alone(me) {
    d_step {
        belief[me] == HELD || belief[me] == LEAVING ->
        on[me] = false;
        belief[me] = (belief[me] == HELD -> LENDING : ABSENT)
    }
}
inline reclaim_alone(me) {
    d_step {
        belief[me] == LENDING ->
        belief[me] = HELD;
        if
        :: !fenced[me] -> come(me)
        :: else
        fi
    }
}

/* What is lent is not held. */
inline look_at_new_pages(me) {
    link = listening;
    belief[me] = (belief[me] == LENDING -> ABSENT : belief[me])
}

#if MUTANT == OLD_PAGES_WHILE_REGISTERING
inline register_again(me) {
    if
    :: d_step {
        link != listening && !joined[me] ->
        join(me, belief[me] == HELD || belief[me] == TAKEN || belief[me] == LEAVING)
       }
    :: d_step { link != listening && joined[me] -> look_at_new_pages(me) }
    fi
}
#elif RESTARTS
inline register_again(me) {
    d_step { link != era -> let_go(me) }
    do
    :: lend_alone(me)
    :: reclaim_alone(me)
    :: d_step {
        link != listening ->
        look_at_new_pages(me);
        join(me, belief[me] != ABSENT)
       }
       break
    od
}
#else
inline register_again(me) { false }
#endif

proctype client(byte me) {
    byte word, theirs, taken, link;
    bool denied;
    {
        do
        :: d_step { !UNCONFIRMED(me) && (belief[me] != LEAVING || mask[AT(link, me)]) -> obey(me) }
        :: look_at_lender(me); d_step { obey(me) }
        :: release_cpu(me); d_step { obey(me) }
        :: reclaim_cpu(me); d_step { obey(me) }
        :: take_cpu(me)
        :: pass_on(me)
        :: take_back_passing(me)
        :: register_again(me)
        od
    } unless { dead[me] }
}

/* -------- arbiter */

#define GRANTS_OF(era) ((era) == 0 -> GRANTS : 1) /* the arbiter that starts later only ends and gives */
#define RELEASED_BY(who) released[AT(me, who)]

/* A new epoch: a LEFT of the last one says nothing. */
inline forget_left(who) {
    left[who] = left[who] && MUTANT == STALE_LEFT_COUNTS
}

inline show_grant() {
    if
    :: d_step {
        was != NOBODY ->
        saved = (saved == was -> NOBODY : saved);
        mask[AT(me, was)] = false;
        asked[AT(me, was)] = false;
        forget_left(was);
        was = NOBODY
       }
    :: was == NOBODY
    fi;
    if
    :: d_step {
        holder != NOBODY ->
        saved = holder;
        mask[AT(me, holder)] = true;
        asked[AT(me, holder)] = false;
        forget_left(holder)
       }
    :: holder == NOBODY
    fi
}

/* The ledger's part of the CPU going to `to`; what is shown of it follows. */
inline move_to(to) {
    d_step {
        was = holder;
        ended[1] = ended[1] || honoured[1];
        ended[2] = ended[2] || honoured[2];
        honoured[1] = false;
        honoured[2] = false;
        ended[3] = ended[3] || honoured[3];
        honoured[3] = false;
        holder = to;
        take_claimant();
        named = NOBODY;
        leaving = false;
        word = 0;
        if
        :: holder != NOBODY ->
            generation++;
            successor[AT(me, holder)] = WORD(generation, NOBODY)
        :: else
        fi
    }
    show_grant()
}

inline close(who) {
    lender[AT(me, who)] = (honoured[who] -> WORD(generation, NOBODY) : lender[AT(me, who)])
}

inline close_lenders() {
    d_step { close(1); close(2); close(3) }
}

inline clear(who) {
    lender[AT(me, who)] = (ended[who] && !honoured[who] -> 0 : lender[AT(me, who)]);
    ended[who] = false
}

/* Those who were named for a grant that has ended see that it has: after the new grant is shown, with its
 * successor or asked back already, but before anything else is decided. */
#define SOME_ENDED (ended[1] || ended[2] || ended[3])
inline show_ended() {
    d_step { SOME_ENDED -> clear(1); clear(2); clear(3) }
}

#define HONOURED(who) (who >= 1 && who <= MOST && (MUTANT == LAST_NAME_ONLY -> named == who : honoured[who]))
#define HANDED_OVER (GENERATION(word) == generation && HONOURED(WHO(word)))

/* The CPU is whose the release word says. */
inline follow_word() {
    if
    :: dead[WHO(word)] -> move_to(NOBODY)
    :: !dead[WHO(word)] -> move_to(WHO(word))
    fi
}

/* Against the holder, by compare-and-swap; PLAIN_TAKE has other parts. */
inline take_word() {
    if
    :: RELEASED_BY(holder) == WORD(generation, LENT) -> RELEASED_BY(holder) = WORD(generation, TAKEN_BACK)
    :: else
    fi
}

inline end_as_read() {
    if
    :: HANDED_OVER -> follow_word()
    :: !HANDED_OVER -> move_to(NOBODY)
    fi
}

/* The grant ends: no successor takes the CPU any more, and only then it is seen whether one has. */
#if MUTANT == ARBITER_READS_FIRST
inline end_grant() {
    word = RELEASED_BY(holder);
    close_lenders();
    d_step { take_word() }
    end_as_read()
}
#else
inline end_grant() {
    close_lenders();
    d_step { word = RELEASED_BY(holder); take_word() }
    end_as_read()
}
#endif

#if MUTANT == PLAIN_TAKE
inline take_lent() {
    atomic { holder != NOBODY && RELEASED_BY(holder) == WORD(generation, LENT) -> word = 1 }
    RELEASED_BY(holder) = WORD(generation, TAKEN_BACK);
    move_to(NOBODY)
}
#else
inline take_lent() {
    d_step {
        holder != NOBODY && RELEASED_BY(holder) == WORD(generation, LENT) ->
        RELEASED_BY(holder) = WORD(generation, TAKEN_BACK)
    }
    move_to(NOBODY)
}
#endif

inline grant(to) {
    d_step {
        holder == NOBODY && !dead[to] && generation < GRANTS_OF(me) && (me == 0 || ALL_JOINED) -> word = 0
    }
    move_to(to)
}

/* The lender word first: who reads the name may release at once. */
inline name(whom, may) {
    d_step {
        may && holder != NOBODY && whom != holder && whom != named && !dead[whom] && generation < GRANTS_OF(me) &&
        (me == 0 || joined[whom]) ->
        honoured[whom] = true;
        named = whom;
        lender[AT(me, whom)] = WORD(generation, holder)
    }
    successor[AT(me, holder)] = WORD(generation, whom)
}

inline name_nobody() {
    d_step {
        holder != NOBODY && named != NOBODY ->
        named = NOBODY;
        successor[AT(me, holder)] = WORD(generation, NOBODY)
    }
}

inline ask_back(may) {
    d_step {
        may && holder != NOBODY && !leaving && !dead[holder] ->
        leaving = true;
        saved = NOBODY;
        mask[AT(me, holder)] = false;
        asked[AT(me, holder)] = true;
        forget_left(holder)
    }
}

/* A fence comes last of what is shown but this: that the grant is over, before anybody else has the CPU. */
inline fence() {
    d_step {
        holder != NOBODY && leaving && fences > 0 && !dead[holder] ->
        fences--;
        on[holder] = false;
        fenced[holder] = true
    }
    d_step { successor[AT(me, holder)] = WORD(generation, TAKEN_BACK) }
    end_grant()
}

#define IS_OVER (holder != NOBODY && ((dead[holder] && MUTANT != DEATHS_GO_UNSEEN) || (leaving && left[holder])))

/* In every round it hears what was released, who died and who left; then it may decide something. */
proctype arbiter(byte me) {
    byte was, word;
    {
        do
        :: show_ended()
        :: name(1, SOME_ENDED && named == NOBODY)
        :: name(2, SOME_ENDED && named == NOBODY)
        :: name(3, SOME_ENDED && named == NOBODY)
        :: ask_back(SOME_ENDED)
        :: atomic {
            !SOME_ENDED ->
            if
            :: holder != NOBODY -> word = RELEASED_BY(holder)
            :: else
            fi;
            if
            :: holder != NOBODY && HANDED_OVER -> goto handed_over
            :: else -> word = 0
            fi;
            if
            :: IS_OVER -> goto over
            :: else
            fi
           }
           if
           :: grant(1)
           :: grant(2)
           :: grant(3)
           :: name(1, true)
           :: name(2, true)
           :: name(3, true)
           :: name_nobody()
           :: ask_back(true)
           :: take_lent()
           :: fence()
           :: true
           fi
        :: false ->
handed_over:
           follow_word()
        :: false ->
over:
           end_grant()
        od
    } unless { era != me }
}

/* Who dies, and when. */
proctype fate() {
    byte crashes = CRASHES, restarts = RESTARTS;
    do
    :: d_step { crashes > 0 && !dead[1] -> crashes--; dead[1] = true; on[1] = false }
    :: d_step { crashes > 0 && !dead[2] -> crashes--; dead[2] = true; on[2] = false }
    :: d_step { crashes > 0 && !dead[3] -> crashes--; dead[3] = true; on[3] = false }
#if RESTARTS
    :: d_step {
        restarts > 0 ->
        restarts--;
        era++;
        generation = 0; named = NOBODY; leaving = false;
        honoured[1] = false; honoured[2] = false; honoured[3] = false;
        ended[1] = false; ended[2] = false; ended[3] = false;
        left[1] = false; left[2] = false; left[3] = false
       }
       d_step { holder = (dead[saved] -> NOBODY : saved) } /* or what was saved is lost: */
       if
       :: true
       :: d_step { holder = NOBODY; saved = NOBODY }
       fi;
       listening = era;
       run arbiter(era)
#endif
    :: true -> break
    od
}

init {
    atomic {
        dead[3] = CLIENTS < 3;
        run arbiter(0);
        run client(1);
        run client(2);
        if
        :: CLIENTS > 2 -> run client(3)
        :: else
        fi;
        run fate()
    }
}

#define KNOWS_OF_IT(who) (belief[who] != ABSENT)
#define FOUND (holder == NOBODY || (!dead[holder] && (on[holder] || \
               (released[AT(era, holder)] == WORD(generation, LENT) && KNOWS_OF_IT(holder)))))

/* Nothing makes a client come back to a new arbiter; until all are, there is nothing to be found. */
#define IS_AWAITED (era > 0 && !ALL_JOINED)

ltl found { []<>(FOUND || IS_AWAITED) }
