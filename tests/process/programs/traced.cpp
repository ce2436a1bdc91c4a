// Tasks of one engine, for HEDDLE_TRACE and HEDDLE_DAG: traced ENGINE [killed|again]
//
// Three "fill"s, a "sum" of what they fill, a "waits" that blocks until a "signals" has run, a "fails" and a
// "cancelled" that reads what it should have written, and one without a name. With "killed" it dies by
// SIGKILL as soon as its trace tells of a "sum". With "again" it does all that twice.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"

namespace {

bool tells_of(const std::string& file, const std::string& word) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.find(word) != std::string::npos) return true;
    return false;
}

void run(const char* engine) {
    heddle::Runtime runtime({.engine = engine, .cpus = {}, .workers = 2});
    heddle::Scalar<int> a(runtime, 0), b(runtime, 0), c(runtime, 0), sum(runtime, 0), bad(runtime, 0);
    heddle::BlockCondition condition;
    {
        heddle::Sequence sequence(runtime);
        for (auto* one : {&a, &b, &c})
            sequence.insert(
                {.name = "fill"}, [](int& v) { v = 1; }, heddle::out(*one));
        sequence.insert(
            {.name = "sum"}, [](int x, int y, int z, int& all) { all = x + y + z; }, heddle::in(a),
            heddle::in(b), heddle::in(c), heddle::out(sum));
        sequence.insert({.name = "waits"}, [&] { condition.block(); });
        sequence.insert({.name = "signals"}, [&] { condition.signal(); });
        sequence.insert([] {});
        sequence.wait();
    }
    heddle::Sequence sequence(runtime);
    sequence.insert(
        {.name = "fails"}, [](int&) { throw std::runtime_error("as it should"); }, heddle::inout(bad));
    sequence.insert(
        {.name = "cancelled"}, [](const int&) {}, heddle::in(bad));
    try {
        sequence.wait();
    } catch (const std::runtime_error&) {
        std::puts(sum.get() == 3 ? "right" : "wrong");
    }
}

}  // namespace

int main(int, char** argv) {
    try {
        run(argv[1]);
        if (argv[2] != nullptr && std::strcmp(argv[2], "again") == 0) run(argv[1]);
        if (argv[2] != nullptr && std::strcmp(argv[2], "killed") == 0) {
            heddle::Runtime runtime({.engine = argv[1], .cpus = {}, .workers = 2});
            while (!tells_of(std::getenv("HEDDLE_TRACE"), "\"sum\"")) {
            }
            std::raise(SIGKILL);
        }
        return 0;
    } catch (const heddle::Error& error) {
        std::fprintf(stderr, "traced: %s\n", error.what());
        return 1;
    }
}
