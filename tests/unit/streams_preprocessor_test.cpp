// Programs that go through the C preprocessor, and those that need not.
#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.hpp"
#include "streams/parser.hpp"

namespace heddle::streams {
namespace {

TEST(StreamsPreprocessorTest, LinesAreJoinedWithOrWithoutDirectives) {
    const TemporaryFolder folder("/tmp/heddle-program-");
    const auto kind = [&](const std::string& text) {
        std::ofstream(folder.path() + "/n.snet") << text;
        const auto program = parse(Source::of_file(folder.path() + "/n.snet"));
        return program->main().body->kind;
    };
    const std::string joined = "net n connect [{<n>} -> {<n>}] .\\\n. [];\n";
    EXPECT_EQ(kind(joined), TopologyKind::kSerial);
    EXPECT_EQ(kind("#define M 1\n" + joined), TopologyKind::kSerial);
    EXPECT_EQ(kind("/* a\n */ #include <limits.h>\nnet n connect [{<linux>} -> {<unix = linux>}];\n"),
              TopologyKind::kFilter);
}

}  // namespace
}  // namespace heddle::streams
