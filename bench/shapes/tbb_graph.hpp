// Tasks ordered by data on oneTBB, which has tasks and no dependencies: a graph written by hand.
//
// It is as quick as such a graph can be made for one thread that inserts: no lock, records and edges from
// arenas that are used again only in the next run and are in memory already, one atomic operation a task and
// edge. It has no errors, no priorities, and never frees. With `kInline` a task that ends goes on itself with
// one that waited for it, so that of a chain TBB sees one task alone; without, TBB gets each task that can
// run.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_group.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "shapes.hpp"

namespace shapes {

struct Node;

struct Edge {
    Node* node;
    Edge* next;
};

struct Node {
    std::atomic<Edge*> successors{nullptr};
    std::atomic<int> waits_for{0};
    void (*body)(void* closure) = nullptr;
    alignas(8) std::byte closure[24];
};

/// Objects one after the other, all given back at once.
template <class T>
class Arena {
  public:
    T& take() {
        if (used_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<T[]>(kBlock));
        T& object = blocks_[used_ / kBlock][used_ % kBlock];
        ++used_;
        return object;
    }
    void clear() { used_ = 0; }

  private:
    static constexpr size_t kBlock = 4096;
    std::vector<std::unique_ptr<T[]>> blocks_;
    size_t used_ = 0;
};

template <bool kInline>
class Tbb {
  public:
    struct Datum {
        int element = 0;
        Node* writer = nullptr;
        Edge* readers = nullptr;  ///< since that writer
    };

    explicit Tbb(int workers)
        : limit_(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(workers)) {}

    std::vector<Datum> data(int count) { return std::vector<Datum>(static_cast<size_t>(count)); }
    void insert() {
        group_.run([] { kernel(); });
    }
    void insert(Datum& written) {
        Node& node = start([&element = written.element] { use(element); });
        finish(node, write(node, written));
    }
    void insert(Datum& read_one, Datum& written) {
        Node& node = start([&one = read_one.element, &element = written.element] { use(one, element); });
        const int before = read(node, read_one);
        finish(node, before + write(node, written));
    }
    void insert(Datum& read_one, Datum& read_two, Datum& written) {
        Node& node = start([&one = read_one.element, &two = read_two.element, &element = written.element] {
            use(one, two, element);
        });
        int before = read(node, read_one);
        before += read(node, read_two);
        finish(node, before + write(node, written));
    }
    void insert(std::span<Datum* const> reads, Datum& written) {
        Node& node = start([&element = written.element] { use(element); });
        int before = 0;
        for (Datum* datum : reads) before += read(node, *datum);
        finish(node, before + write(node, written));
    }
    void wait() { group_.wait(); }
    template <class Function>
    void region(Function function) {
        nodes_.clear();
        edges_.clear();
        function();
    }

  private:
    /// More than a task has predecessors: until all were found none of them is the last.
    static constexpr int kBias = 1 << 30;

    static Edge* closed() { return reinterpret_cast<Edge*>(uintptr_t{1}); }
    template <class... Elements>
    static void use(Elements&...) {
        kernel();
    }

    template <class Closure>
    Node& start(Closure closure) {
        static_assert(sizeof(Closure) <= sizeof(Node::closure));
        Node& node = nodes_.take();
        node.successors.store(nullptr, std::memory_order_relaxed);
        node.waits_for.store(kBias, std::memory_order_relaxed);
        new (node.closure) Closure(closure);
        node.body = [](void* self) { (*static_cast<Closure*>(self))(); };
        return node;
    }
    void finish(Node& node, int before) {
        const int taken = kBias - before;
        if (before == 0 || node.waits_for.fetch_sub(taken, std::memory_order_acq_rel) == taken) spawn(node);
    }
    int read(Node& node, Datum& datum) {
        Edge& reader = edges_.take();
        reader = {&node, datum.readers};
        datum.readers = &reader;
        return datum.writer == nullptr ? 0 : link(*datum.writer, node);
    }
    int write(Node& node, Datum& datum) {
        int before = 0;
        if (datum.readers == nullptr) {
            if (datum.writer != nullptr) before = link(*datum.writer, node);
        } else {
            for (const Edge* reader = datum.readers; reader != nullptr; reader = reader->next)
                before += link(*reader->node, node);
            datum.readers = nullptr;
        }
        datum.writer = &node;
        return before;
    }
    /// 1 where `before` has not ended, and 0 else.
    int link(Node& before, Node& node) {
        Edge* head = before.successors.load(std::memory_order_acquire);
        if (head == closed()) return 0;
        Edge& edge = edges_.take();
        edge.node = &node;
        do {
            if (head == closed()) return 0;
            edge.next = head;
        } while (!before.successors.compare_exchange_weak(head, &edge, std::memory_order_release,
                                                          std::memory_order_acquire));
        return 1;
    }
    void spawn(Node& node) {
        group_.run([this, &node] { run(node); });
    }
    void run(Node& first) {
        for (Node* node = &first; node != nullptr;) {
            node->body(node->closure);
            Edge* edge = node->successors.exchange(closed(), std::memory_order_acq_rel);
            node = nullptr;
            for (; edge != nullptr; edge = edge->next) {
                if (edge->node->waits_for.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
                if (!kInline || node != nullptr)
                    spawn(*edge->node);
                else
                    node = edge->node;
            }
        }
    }

    tbb::global_control limit_;
    tbb::task_group group_;
    Arena<Node> nodes_;
    Arena<Edge> edges_;
};

}  // namespace shapes
