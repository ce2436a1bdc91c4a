// A libnvrtc for machines without one: finds the kernels of a source and writes PTX with their parameters. It
// refuses a line with "unknown", as NVRTC does, and an architecture that it does not know.
#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Result = int;

struct Program {
    std::string source, log, ptx;
};

/// "unsigned* data" -> ".u64", "int by" -> ".u32".
std::string type_of(const std::string& parameter) {
    if (parameter.find('*') != std::string::npos) return ".u64 .ptr .align 1";
    return parameter.find("float") != std::string::npos ? ".f32" : ".u32";
}

std::string entry_of(const std::string& line) {
    const std::string mark = "__global__ void ";
    const size_t begin = line.find(mark) + mark.size(), open = line.find('(', begin),
                 close = line.find(')', open);
    const std::string name = line.substr(begin, open - begin);
    std::string text = ".visible .entry " + name + "(";
    std::istringstream list(line.substr(open + 1, close - open - 1));
    int count = 0;
    for (std::string parameter; std::getline(list, parameter, ','); ++count)
        text += (count == 0 ? "\n" : ",\n") + std::string("\t.param ") + type_of(parameter) + " " + name +
                "_param_" + std::to_string(count);
    return text + "\n)\n{\n\tret;\n}\n";
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE Result nvrtcVersion(int* major, int* minor) {
    return *major = 12, *minor = 4, 0;
}
FAKE Result nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                               const char* const*) {
    *program = new Program{source, {}, {}};
    return 0;
}
FAKE Result nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    for (int i = 0; i < count; ++i)
        if (std::strcmp(options[i], "--gpu-architecture=compute_99") == 0) return 5;
    std::istringstream lines(program->source);
    program->ptx = ".version 8.4\n.target sm_52\n.address_size 64\n";
    int number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
        if (line.starts_with("#line ")) number = std::stoi(line.substr(6)) - 1;
        if (line.find("unknown") != std::string::npos)
            program->log +=
                "program.cu(" + std::to_string(number) + "): error: identifier \"unknown\" is undefined\n";
        if (line.find("__global__") != std::string::npos) program->ptx += entry_of(line);
    }
    return program->log.empty() ? 0 : 6;
}
FAKE Result nvrtcGetProgramLogSize(Program* program, size_t* size) {
    return *size = program->log.size() + 1, 0;
}
FAKE Result nvrtcGetProgramLog(Program* program, char* log) {
    return std::strcpy(log, program->log.c_str()), 0;
}
FAKE Result nvrtcGetPTXSize(Program* program, size_t* size) {
    return *size = program->ptx.size() + 1, 0;
}
FAKE Result nvrtcGetPTX(Program* program, char* ptx) {
    return std::strcpy(ptx, program->ptx.c_str()), 0;
}
FAKE Result nvrtcDestroyProgram(Program** program) {
    delete *program;
    return *program = nullptr, 0;
}
FAKE const char* nvrtcGetErrorString(Result result) {
    return result == 5   ? "NVRTC_ERROR_INVALID_OPTION"
           : result == 6 ? "NVRTC_ERROR_COMPILATION"
                         : "NVRTC_ERROR";
}
