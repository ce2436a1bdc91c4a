// The example of tone mapping: what it reads, and that all devices show the same as a plain loop.
#include "tonemap/tonemap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.hpp"
#include "heddle/device.hpp"
#include "tonemap/compare.hpp"

namespace tonemap {
namespace {

using namespace heddle::devices;
using ::testing::HasSubstr;

/// Light over five decades, with a dark corner.
HdrPicture gradient(size_t width, size_t height) {
    HdrPicture picture{width, height, {}};
    for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x) {
            const float light = std::pow(10.0f, 5.0f * static_cast<float>(x) / static_cast<float>(width) - 3);
            picture.pixels.push_back(
                {light, light * static_cast<float>(y) / static_cast<float>(height), 0.1f, 0});
        }
    return picture;
}

TEST(ToneMapping, EachMixOfDevicesShowsWhatAPlainLoopShows) {
    const HdrPicture picture = gradient(64, 37);
    const Picture expected = reference(picture, {});
    const std::vector<SimulatedDevice> mix{{.name = "gpu", .type = DeviceType::kGpu},
                                           {.name = "cpu", .shares_host_memory = true},
                                           {.name = "other", .us_per_byte = 1e-3}};
    for (size_t devices = 1; devices <= mix.size(); ++devices)
        for (const size_t parts : {0, 1, 2, 5, 100}) {
            DeviceRuntime runtime(
                {.kinds = {}, .simulated = {mix.begin(), mix.begin() + static_cast<long>(devices)}});
            ToneMapper mapper(runtime);
            const Picture result = mapper.run(picture, {.parts = parts});
            EXPECT_LE(greatest_difference(result, expected), 1)
                << devices << " devices, " << parts << " parts";
        }
    // It is a picture, not one grey.
    EXPECT_GT(expected.pixels[63][0], 200);
    EXPECT_LT(expected.pixels[0][0], 20);
}

TEST(ToneMapping, OpenClDevicesShowIt) {
    for (const DeviceInfo& info : list_devices())
        if (info.kind == "opencl" && !info.available) GTEST_SKIP() << info.reason;
    const HdrPicture picture = gradient(256, 64);
    DeviceRuntime runtime({.kinds = {"opencl"}, .simulated = {{.name = "simulated"}}});
    ToneMapper mapper(runtime);
    for (const size_t parts : {0, 0, 1, 8})
        EXPECT_LE(greatest_difference(mapper.run(picture, {.parts = parts}), reference(picture, {})), 1);
}

class PictureFiles : public ::testing::Test {
  protected:
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(folder_.path() + "/" + name, std::ios::binary) << bytes;
        return folder_.path() + "/" + name;
    }
    static std::string failure(const std::string& path) {
        try {
            (void)read_hdr_picture(path);
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "it was read";
    }

    heddle::TemporaryFolder folder_{"/tmp/heddle-picture-"};
    const std::string header_ = "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 8\n";
    /// A row of 8 pixels of 1.0 in red: runs, and one value that is none.
    const std::string row_ = std::string("\x02\x02\x00\x08", 4) + "\x88\x80" + std::string("\x88\x00", 2) +
                             std::string("\x87\x00\x01\x00", 4) + "\x88\x81";
};

TEST_F(PictureFiles, RunsOfRadianceAreRead) {
    const HdrPicture picture = read_hdr_picture(write("a.hdr", header_ + row_ + row_));
    ASSERT_EQ(picture.pixels.size(), 16u);
    EXPECT_NEAR(picture.pixels[7][0], 1.0, 0.01);
    EXPECT_NEAR(picture.pixels[15][1], 0.0, 0.01);
}

TEST_F(PictureFiles, ABrokenFileIsNamedWithThePlace) {
    EXPECT_THAT(failure(write("a.hdr", header_ + row_)), HasSubstr("a.hdr: the file is cut off: row 1"));
    EXPECT_THAT(failure(write("b.hdr", header_.substr(0, 20))), HasSubstr("cut off: its header ends"));
    EXPECT_THAT(failure(write("c.hdr", "GIF89a\n")), HasSubstr("no Radiance picture at byte 7"));
    EXPECT_THAT(failure(write("d.hdr", "#?RADIANCE\n\n-Y 0 +X 8\n")), HasSubstr("a picture of 8 x 0 pixels"));
    EXPECT_THAT(failure(write("e.hdr", "#?RADIANCE\n\n-Y 99999999999 +X 99999999999\n")),
                HasSubstr("pixels"));
    EXPECT_THAT(failure(write("f.hdr", header_ + std::string("\x02\x02\x00\x09", 4))),
                HasSubstr("another width"));
    EXPECT_THAT(failure(write("g.hdr", header_ + std::string("\x02\x02\x00\x08\xff\x01", 6))),
                HasSubstr("longer than the picture"));
    EXPECT_THAT(failure(folder_.path() + "/none.hdr"), HasSubstr("cannot be read"));
    EXPECT_THAT(failure("a.jpg"), HasSubstr("this program reads"));
}

/// Pictures of Debian's blender-data, CC0; some have negative values.
class RealPictures : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto endings = readable_endings();
        if (!std::filesystem::exists(folder_) ||
            std::find(endings.begin(), endings.end(), ".exr") == endings.end())
            GTEST_SKIP() << "blender-data or libopenexr-dev is not installed";
    }
    const std::filesystem::path folder_ = "/usr/share/blender/datafiles/studiolights/world";
};

TEST_F(RealPictures, ShowAsAPlainLoopShowsThem) {
    DeviceRuntime runtime({.kinds = {}, .simulated = {{.name = "one"}, {.name = "two"}}});
    ToneMapper mapper(runtime);
    for (const char* name : {"forest.exr", "city.exr"}) {
        const HdrPicture picture = read_hdr_picture(folder_ / name);
        EXPECT_EQ(picture.pixels.size(), 1024u * 512u);
        EXPECT_LE(greatest_difference(mapper.run(picture, {.parts = 7}), reference(picture, {})), 1) << name;
    }
}

/// Of a .ppm of 8 bits: "P6", width, height, 255, and the channels of each pixel.
double mean_difference(const Picture& picture, const std::string& ppm) {
    std::istringstream file(ppm);
    std::string format;
    size_t width = 0, height = 0, most = 0;
    file >> format >> width >> height >> most;
    EXPECT_EQ(format, "P6");
    EXPECT_EQ(std::pair(width, height), std::pair(picture.width, picture.height));
    file.get();
    double sum = 0;
    for (const auto& pixel : picture.pixels)
        for (size_t i = 0; i < 3; ++i) sum += std::abs(file.get() - pixel[i]);
    EXPECT_TRUE(file.good());
    return sum / static_cast<double>(3 * picture.pixels.size());
}

/// The same operator by other people. It rounds down, which is half of 255, and its colours have another
/// matrix; negative values, with which it gives a black picture, are clamped for it.
TEST_F(RealPictures, ShowAsPfstoolsShowsThem) {
    for (const char* program : {"/usr/bin/pfsinexr", "/usr/bin/pfstmo_reinhard02"})
        if (!std::filesystem::exists(program)) GTEST_SKIP() << "pfstools or pfstmo is not installed";
    const heddle::TemporaryFolder folder{"/tmp/heddle-picture-"};
    const std::string theirs = folder.path() + "/theirs.ppm";
    for (const char* name : {"forest.exr", "city.exr", "interior.exr"}) {
        const std::string file = folder_ / name;
        const std::string command = "(pfsinexr " + file +
                                    " | pfsclamp --rgb --min 0 --max 1e9 | pfstmo_reinhard02 --key 0.18"
                                    " | pfsgamma --gamma 2.2 | pfsoutppm " +
                                    theirs + ") 2>/dev/null";
        ASSERT_EQ(std::system(command.c_str()), 0);
        std::ostringstream bytes;
        bytes << std::ifstream(theirs, std::ios::binary).rdbuf();
        EXPECT_LE(mean_difference(reference(read_hdr_picture(file), {}), bytes.str()), 2) << name;
    }
}

TEST_F(PictureFiles, APngHasItsSignatureAndSize) {
    const std::string path = folder_.path() + "/a.png";
    write_png(path, {300, 200, std::vector<std::array<uint8_t, 4>>(300 * 200, {1, 2, 3, 255})});
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    EXPECT_EQ(all.str().substr(1, 3), "PNG");
    EXPECT_EQ(all.str().substr(16, 8), std::string("\0\0\x01\x2c\0\0\0\xc8", 8));
    EXPECT_EQ(all.str().substr(all.str().size() - 8), "IEND\xae\x42\x60\x82");
}

TEST(ToneMapping, TheComparisonShowsThreePicturesAndEachTask) {
    const HdrPicture picture = gradient(600, 30);
    DeviceRuntime runtime({.kinds = {}, .simulated = {{.name = "a <fast> one"}, {.name = "other"}}});
    ToneMapper mapper(runtime);
    const Picture result = mapper.run(picture, {.parts = 5});
    const heddle::TemporaryFolder folder("/tmp/heddle-tonemap-");
    const std::string path = folder.path() + "/page.html";
    write_comparison(path, picture, reference(picture, {}), result, mapper.tasks(), runtime.devices());
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const auto count = [page = text.str()](const std::string& word) {
        size_t found = 0;
        for (size_t at = page.find(word); at != std::string::npos; at = page.find(word, at + 1)) ++found;
        return found;
    };
    EXPECT_EQ(count("data:image/png;base64,iVBORw0KGgo"), 3u);
    EXPECT_EQ(count("<rect "), mapper.tasks().size());
    EXPECT_EQ(count("a &lt;fast&gt; one"), 1u);
    EXPECT_THROW(write_comparison(folder.path() + "/none/page.html", picture, result, result, {}, {}),
                 std::runtime_error);
}

}  // namespace
}  // namespace tonemap
