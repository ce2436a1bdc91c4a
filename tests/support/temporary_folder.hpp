// TemporaryFolder: a new, empty folder with a short path, for sockets and files; gone with its owner.
#pragma once

#include "base/temporary_folder.hpp"

namespace heddle::test {

class TemporaryFolder : public heddle::TemporaryFolder {
  public:
    TemporaryFolder() : heddle::TemporaryFolder("/tmp/heddle-test-") {}
};

}  // namespace heddle::test
