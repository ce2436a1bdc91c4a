// MetadataReader: what the <metadata> of a program says of its boxes and nets.
#pragma once

#include "streams/syntax.hpp"

namespace heddle::streams {

class MetadataReader {
  public:
    /// The text between <metadata> and </metadata>, which begins at `place`, in the body of the net of that
    /// path. Throws kBadInput.
    void read(std::string_view text, Place place, const Source& source,
              const std::vector<std::string>& around);
    /// Into the boxes and nets; throws kBadInput for one that is not there.
    void apply(Program& program, const Source& source) const;

  private:
    struct Block {
        std::string of;                 ///< "box", "net", "default", "boxdefault" or "netdefault"
        std::vector<std::string> path;  ///< names, outermost first
        Metadata keys;
        Place place;
    };
    static void apply(const Block& block, Program& program, const Source& source);

    std::vector<Block> blocks_;
};

}  // namespace heddle::streams
