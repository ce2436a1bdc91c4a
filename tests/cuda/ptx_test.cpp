// What is read from PTX, and what clang says of our CUDA sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.hpp"
#include "devices/kinds/cuda/cuda_program.hpp"
#include "tonemap/tonemap.hpp"

namespace heddle::devices {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// PTX of a source with the prelude, by clang, which needs no CUDA for it; "" where it refuses it.
std::string ptx_by_clang(const std::string& source) {
    const TemporaryFolder folder("heddle-cuda");
    const std::string from = folder.path() + "/program.cu", to = folder.path() + "/program.ptx";
    std::ofstream(from) << "#include \"" HEDDLE_SOURCE_DIR "/tests/cuda/clang_builtins.h\"\n"
                        << cuda::with_prelude(source);
    const std::string command =
        "clang -x cuda --cuda-device-only -nocudainc -nocudalib "
        "--cuda-gpu-arch=sm_52 -O2 -S -w -o " +
        to + " " + from;
    if (std::system(command.c_str()) != 0) return "";
    std::stringstream text;
    text << std::ifstream(to).rdbuf();
    return text.str();
}

class CudaPtx : public ::testing::Test {
  protected:
    void SetUp() override {
        if (ptx_by_clang("extern \"C\" __global__ void nothing() {}").empty())
            GTEST_SKIP() << "skipped: clang, with NVPTX, is not installed";
    }
};

TEST_F(CudaPtx, TheKernelsAndTheirParametersAreFound) {
    const auto entries = cuda::entries_of(ptx_by_clang(R"(
        struct Three { double a; int b; float c[2]; };
        extern "C" __global__ void by_value(Three three, unsigned char one, short two, double* to) {
            to[threadIdx.x] = three.a + three.b + one + two;
        }
        extern "C" __global__ void no_parameters() {}
        extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
            unsigned long long i = heddle_global_id(0);
            if (i < n) y[i] += a * x[i];
        }
    )"));
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_THAT(entries.at("saxpy"), ElementsAre(4, 4, 8, 8));
    EXPECT_THAT(entries.at("no_parameters"), ElementsAre());
    EXPECT_THAT(entries.at("by_value"), ElementsAre(24, 1, 2, 8));
}

TEST_F(CudaPtx, WhatStandsBeforeASourceIsDefinedAndMovesNoLine) {
    const std::string ptx = ptx_by_clang(
        "extern \"C\" __global__ void f(int* to) { to[heddle_global_id(2)] = __LINE__ * 1000; }");
    EXPECT_THAT(ptx, HasSubstr(".visible .const .align 8 .b8 heddle_offset[24];"));
    EXPECT_THAT(ptx, HasSubstr(", 1000;"));
}

TEST_F(CudaPtx, TheKernelsOfTheExampleCompile) {
    const auto entries = cuda::entries_of(ptx_by_clang(tonemap::ToneMapper::source().cuda));
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_THAT(entries.at("row_luminance"), ElementsAre(8, 4, 8));
    EXPECT_THAT(entries.at("exposure"), ElementsAre(8, 4, 4, 4, 8));
    EXPECT_THAT(entries.at("map_tones"), ElementsAre(8, 4, 8, 4, 8));
}

TEST(CudaEntries, WhatIsCutOffIsNone) {
    EXPECT_TRUE(cuda::entries_of(".visible .entry cut(").empty());
    EXPECT_TRUE(cuda::entries_of("").empty());
    EXPECT_THAT(cuda::entries_of(".entry f(.param .align 8 .b8 f_param_0[many])").at("f"), ElementsAre(0));
    EXPECT_THAT(
        cuda::entries_of(".entry f(.param .u64 .ptr .align 1 f_param_0, .param .b16 f_param_1)").at("f"),
        ElementsAre(8, 2));
}

}  // namespace
}  // namespace heddle::devices
