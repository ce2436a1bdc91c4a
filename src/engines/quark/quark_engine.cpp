// The plug-in: QUARK's graph behind a GraphEngine.
#include "engines/quark/quark_graph.hpp"

namespace heddle {
namespace {

const EngineFactory kFactory{"quark", [] { return std::string(); }, [] { return std::string("QUARK"); },
                             [](const EngineOptions& options) -> std::unique_ptr<Engine> {
                                 return std::make_unique<GraphEngine>(
                                     options, [](GraphEngine& engine) -> std::unique_ptr<ForeignGraph> {
                                         return std::make_unique<QuarkGraph>(engine);
                                     });
                             }};

}  // namespace
}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle::EngineFactory* heddle_engine() {
    return &heddle::kFactory;
}
