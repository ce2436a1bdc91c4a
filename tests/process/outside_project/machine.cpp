// Uses the C++ interface: a value, a result and an error that crosses the library's border.
#include <heddle/error.hpp>
#include <heddle/machine.hpp>
#include <iostream>

int main() {
    const heddle::Machine machine = heddle::Machine::synthetic("numa:2 core:4 pu:2");
    if (machine.nearest({}, machine.cpus(), 8).to_list() != "0-7") return 1;
    try {
        (void)heddle::Machine::synthetic("loom");
        return 2;
    } catch (const heddle::Error& error) {
        if (error.code() != heddle::ErrorCode::kBadInput) return 3;
    }
    std::cout << machine.summary() << "\n";
    return heddle::Machine::detect().cpus().empty() ? 4 : 0;
}
