// The shape "replay" on oneTBB's flow graph: nodes and edges made once, then the graph is run again and
// again.
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>

#include "shapes.hpp"

namespace {

using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

class TbbFlow {
  public:
    struct Datum {
        int element = 0;
        Node* writer = nullptr;
        std::vector<Node*> readers;  ///< since that writer
    };
    std::vector<Datum> data(int count) { return std::vector<Datum>(static_cast<size_t>(count)); }

    class Recorder {
      public:
        explicit Recorder(TbbFlow&) {}
        void insert(Datum& written) { add({}, written); }
        void insert(Datum& read, Datum& written) { add({&read}, written); }
        void insert(Datum& read, Datum& also_read, Datum& written) { add({&read, &also_read}, written); }
        void replay() {
            for (Node* node : first_) node->try_put({});
            graph_.wait_for_all();
        }

      private:
        void add(std::initializer_list<Datum*> reads, Datum& written) {
            Node& node = nodes_.emplace_back(graph_, [](const tbb::flow::continue_msg&) {
                shapes::kernel();
                return tbb::flow::continue_msg();
            });
            std::set<Node*> before;
            for (Datum* read : reads) {
                if (read->writer != nullptr) before.insert(read->writer);
                read->readers.push_back(&node);
            }
            before.insert(written.readers.begin(), written.readers.end());
            if (written.readers.empty() && written.writer != nullptr) before.insert(written.writer);
            written.readers.clear();
            written.writer = &node;
            for (Node* one : before) tbb::flow::make_edge(*one, node);
            if (before.empty()) first_.push_back(&node);
        }

        tbb::flow::graph graph_;
        std::deque<Node> nodes_;
        std::vector<Node*> first_;
    };
};

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc == 4 && std::strcmp(argv[3], "--quick") == 0;
    const int workers = argc >= 3 ? std::atoi(argv[2]) : 0;
    if (workers < 1 || argc > 4 || (argc == 4 && !quick) || std::strcmp(argv[1], "replay") != 0) {
        std::fprintf(stderr, "usage: %s replay WORKERS [--quick]\n", argv[0]);
        return 2;
    }
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<size_t>(workers));
    TbbFlow engine;
    std::printf("%.6g\n",
                shapes::replay_ns_per_task<TbbFlow::Recorder>(engine, shapes::Cholesky{}, quick ? 3 : 15));
    return 0;
}
