// front_nets NET NUMBER: runs one of streams_programs' nets on S-Net's FRONT with 2 workers, for one record
// {<N = NUMBER>}, and prints the seconds from before the run-time system is made until it is gone, and what
// tag came out. NET is one of: nothing, feedback, star, fibonacci, filters, boxes.
//
// The nets are put together by the calls that S-Net's compiler would write (snetentities.h of snet-rts),
// which is not public. Nets here have no signatures: FRONT has no borders at run time.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// In this order.
#include "C4SNet.h"
#include "bool.h"
#include "distribution.h"
#include "expression.h"
#include "filter.h"
#include "handle.h"
#include "interface_functions.h"
#include "list.h"
#include "networkinterface.h"
#include "snetentities.h"
#include "snettypes.h"
#include "variant.h"
#include "workloads/stream_boxes.h"

enum { kNone, kN, kL, kM, kR, kV, kW, kX, kT, kF, kE, kLabels };
static char* const kNames[kLabels] = {"E__None", "N", "L", "M", "R", "V", "W", "X", "T", "F", "E"};

typedef snet_stream_t* Net(snet_stream_t* in, snet_info_t* info, int location);

static snet_variant_t* tags(int count, const int* names) {
    snet_variant_t* const variant = SNetVariantCreateEmpty();
    for (int i = 0; i < count; ++i) SNetVariantAddTag(variant, names[i]);
    return variant;
}
#define TAGS(...) tags((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__})
#define PATTERN(...) SNetVariantListCreate(1, TAGS(__VA_ARGS__))

static snet_expr_t* value_of(int name) {
    return SNetEtag(name);
}
static snet_expr_t* number(int value) {
    return SNetEconsti(value);
}
static snet_expr_list_t* always(void) {
    return SNetExprListCreate(1, SNetEconstb(true));
}
static snet_filter_instr_t* set(int name, snet_expr_t* value) {
    return SNetCreateFilterInstruction(snet_tag, name, value);
}
#define RESULT(count, ...) \
    SNetFilterInstrListCreate(1 + (count), SNetCreateFilterInstruction(create_record), __VA_ARGS__)
#define ONE(record) SNetFilterInstrListListCreate(1, record)

static snet_stream_t* nothing(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kN), always(), ONE(RESULT(1, set(kN, value_of(kN)))));
}

static snet_stream_t* countdown(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kN), always(),
                      ONE(RESULT(1, set(kN, SNetEsub(value_of(kN), number(1))))));
}
static snet_stream_t* feedback(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFeedback(in, info, location, PATTERN(kN),
                        SNetExprListCreate(1, SNetEgt(value_of(kN), number(0))), countdown);
}
static snet_stream_t* star(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetStar(in, info, location, PATTERN(kN), SNetExprListCreate(1, SNetEeq(value_of(kN), number(0))),
                    countdown, star);
}

static snet_stream_t* turn(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kN),
                      SNetExprListCreate(2, SNetEeq(value_of(kN), number(1)), SNetEconstb(true)),
                      ONE(RESULT(2, set(kX, number(0)), set(kE, number(0)))),
                      SNetFilterInstrListListCreate(2, RESULT(1, set(kN, SNetEsub(value_of(kN), number(1)))),
                                                    RESULT(1, set(kX, number(0)))));
}
static snet_stream_t* source(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFeedback(in, info, location, PATTERN(kN), always(), turn);
}
static snet_stream_t* plus_one(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kX), always(),
                      ONE(RESULT(1, set(kX, SNetEadd(value_of(kX), number(1))))));
}
static snet_stream_t* the_last(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kX, kE), always(), ONE(RESULT(1, set(kX, value_of(kX)))));
}
static snet_stream_t* no_more(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kX), always(), SNetFilterInstrListListCreate(0));
}
static snet_stream_t* keep_last(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetParallel(in, info, location, SNetVariantListListCreate(2, PATTERN(kX, kE), PATTERN(kX)),
                        the_last, no_more);
}
static snet_stream_t* add_and_keep(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, plus_one, keep_last);
}
static snet_stream_t* add_twice(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, plus_one, add_and_keep);
}
static snet_stream_t* add_thrice(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, plus_one, add_twice);
}
static snet_stream_t* filters(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, source, add_thrice);
}

// kBoxes of streams_commands.cpp, with the functions of workloads/stream_boxes.c.
static int taken(snet_handle_t* box, int name) {
    return SNetRecTakeTag(SNetHndGetRecord(box), name);
}
static snet_handle_t* call_many(snet_handle_t* box) {
    return many(box, taken(box, kN));
}
static snet_handle_t* call_add(snet_handle_t* box) {
    return add(box, taken(box, kX));
}
static snet_handle_t* call_last(snet_handle_t* box) {
    const int x = taken(box, kX);
    return last(box, x, taken(box, kE));
}
static snet_handle_t* call_another(snet_handle_t* box) {
    return another(box, taken(box, kX));
}
static snet_handle_t* no_realm(snet_handle_t* box) {
    return box;
}
static snet_stream_t* box(snet_stream_t* in, snet_info_t* info, int location, const char* name,
                          snet_box_fun_t call, snet_int_list_list_t* outputs) {
    return SNetBox(in, info, location, name, call, no_realm, no_realm, no_realm, outputs);
}
static snet_int_list_list_t* x_alone(void) {
    return SNetIntListListCreate(1, SNetIntListCreate(2, tag, kX));
}
static snet_stream_t* box_many(snet_stream_t* in, snet_info_t* info, int location) {
    return box(
        in, info, location, "many", call_many,
        SNetIntListListCreate(2, SNetIntListCreate(2, tag, kX), SNetIntListCreate(4, tag, kX, tag, kE)));
}
static snet_stream_t* box_add(snet_stream_t* in, snet_info_t* info, int location) {
    return box(in, info, location, "add", call_add, x_alone());
}
static snet_stream_t* box_last(snet_stream_t* in, snet_info_t* info, int location) {
    return box(in, info, location, "last", call_last, x_alone());
}
static snet_stream_t* box_another(snet_stream_t* in, snet_info_t* info, int location) {
    return box(in, info, location, "another", call_another, x_alone());
}
static snet_stream_t* box_end(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetParallel(in, info, location, SNetVariantListListCreate(2, PATTERN(kX, kE), PATTERN(kX)),
                        box_last, box_another);
}
static snet_stream_t* add_and_end(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, box_add, box_end);
}
static snet_stream_t* add_twice_and_end(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, box_add, add_and_end);
}
static snet_stream_t* add_thrice_and_end(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, box_add, add_twice_and_end);
}
static snet_stream_t* boxes(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, box_many, add_thrice_and_end);
}

static snet_stream_t* level(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kN), always(),
                      ONE(RESULT(3, set(kN, value_of(kN)), set(kL, number(0)), set(kM, number(1)))));
}
static snet_stream_t* leaf(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kN),
                      SNetExprListCreate(2, SNetEle(value_of(kN), number(1)), SNetEconstb(true)),
                      ONE(RESULT(2, set(kN, value_of(kN)), set(kT, number(0)))),
                      ONE(RESULT(2, set(kN, value_of(kN)), set(kF, number(0)))));
}
static snet_stream_t* is_leaf(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kN, kT), always(), ONE(RESULT(1, set(kR, value_of(kN)))));
}
static snet_filter_instr_list_t* less(int by, int right) {
    return RESULT(3, set(kN, SNetEsub(value_of(kN), number(by))), set(kL, SNetEadd(value_of(kL), number(1))),
                  set(kM, SNetEadd(SNetEmul(number(2), value_of(kM)), number(right))));
}
static snet_stream_t* is_none(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kN, kF, kM, kL), always(),
                      SNetFilterInstrListListCreate(2, less(1, 1), less(2, 0)));
}
static snet_stream_t* either(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetParallel(in, info, location,
                        SNetVariantListListCreate(2, PATTERN(kN, kF, kM, kL), PATTERN(kN, kT)), is_none,
                        is_leaf);
}
static snet_stream_t* step(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, leaf, either);
}
static snet_stream_t* recur(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetStar(in, info, location, PATTERN(kR), always(), step, recur);
}
static snet_filter_instr_list_t* half(int side) {
    return RESULT(3, set(kL, value_of(kL)), set(kM, SNetEdiv(value_of(kM), number(2))),
                  set(side, value_of(kR)));
}
static snet_stream_t* rewrite(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(
        in, info, location, TAGS(kL, kM, kR),
        SNetExprListCreate(3, SNetEle(value_of(kL), number(0)),
                           SNetEeq(SNetEmod(value_of(kM), number(2)), number(0)), SNetEconstb(true)),
        ONE(RESULT(1, set(kX, value_of(kR)))), ONE(half(kV)), ONE(half(kW)));
}
static snet_stream_t* cell(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSync(in, info, location, SNetVariantListCreate(2, TAGS(kV), TAGS(kW)),
                    SNetExprListCreate(2, SNetEconstb(true), SNetEconstb(true)));
}
static snet_stream_t* cells(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetStar(in, info, location, PATTERN(kV, kW), always(), cell, cells);
}
static snet_stream_t* by_level(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSplit(in, info, location, cells, kL, kL);
}
static snet_stream_t* sum(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kV, kW, kL), always(),
                      ONE(RESULT(2, set(kR, SNetEadd(value_of(kV), value_of(kW))),
                                 set(kL, SNetEsub(value_of(kL), number(1))))));
}
static snet_stream_t* pair(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, by_level, sum);
}
static snet_stream_t* result(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFilter(in, info, location, TAGS(kX), always(), ONE(RESULT(1, set(kX, value_of(kX)))));
}
static snet_stream_t* joined(snet_stream_t* in, snet_info_t* info, int location) {
    snet_variant_list_t* const halves = SNetVariantListCreate(2, TAGS(kL, kV), TAGS(kL, kW));
    return SNetParallel(in, info, location, SNetVariantListListCreate(2, PATTERN(kX), halves), result, pair);
}
static snet_stream_t* round_trip(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, rewrite, joined);
}
static snet_stream_t* merge(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetFeedback(in, info, location, PATTERN(kM, kL), always(), round_trip);
}
static snet_stream_t* recur_and_merge(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, recur, merge);
}
static snet_stream_t* fibonacci(snet_stream_t* in, snet_info_t* info, int location) {
    return SNetSerial(in, info, location, level, recur_and_merge);
}

static const struct {
    const char* name;
    Net* net;
} kNets[] = {{"nothing", nothing},     {"feedback", feedback}, {"star", star},
             {"fibonacci", fibonacci}, {"filters", filters},   {"boxes", boxes}};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/// The first tag's value of what was written; -1: there is none.
static long written(const char* path) {
    static char text[4096];
    FILE* const file = fopen(path, "r");
    if (file == NULL) return -1;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char* const found = strstr(text, "<tag");
    const char* const end = found == NULL ? NULL : strchr(found, '>');
    return end == NULL ? -1 : strtol(end + 1, NULL, 10);
}

int main(int argc, char** argv) {
    Net* net = NULL;
    for (size_t i = 0; argc == 3 && i < sizeof kNets / sizeof *kNets; ++i)
        if (strcmp(argv[1], kNets[i].name) == 0) net = kNets[i].net;
    char in[] = "/tmp/front-in-XXXXXX", out[] = "/tmp/front-out-XXXXXX";
    FILE* const input = net == NULL ? NULL : fdopen(mkstemp(in), "w");
    if (input == NULL || mkstemp(out) < 0) {
        fprintf(stderr, "usage: front_nets nothing|feedback|star|fibonacci|filters|boxes NUMBER\n");
        return 2;
    }
    fprintf(input,
            "<?xml version=\"1.0\" ?>\n<record xmlns=\"snet-home.org\" type=\"data\" mode=\"textual\" "
            "interface=\"C4SNet\" >\n"
            "<tag label=\"N\">%ld</tag>\n</record>\n<record type=\"terminate\" />\n",
            strtol(argv[2], NULL, 10));
    fclose(input);
    // A box for one record at a time, as ours are: its default, two at once in order, is several times
    // slower.
    char* arguments[] = {argv[0], "-w", "2", "-c", "1", "-i", in, "-o", out, NULL};
    char* interfaces[] = {"C4SNet"};
    C4SNetInit(0, nodist);
    const double begin = now();
    const int code = SNetInRun(9, arguments, (char**)kNames, kLabels, interfaces, 1, net);
    const double took = now() - begin;
    printf("%.9f %ld\n", took, written(out));
    unlink(in);
    unlink(out);
    return code;
}
