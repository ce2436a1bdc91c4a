// heddle snet serve: S-Net's resource server (docs/RESSERV.md).
#pragma once

namespace CLI {
class App;
}

namespace heddle::tool {

void add_snet_serve(CLI::App& snet);

}  // namespace heddle::tool
