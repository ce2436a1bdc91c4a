// Tasks ordered by data on oneTBB, which has tasks and no dependencies: a graph written by hand.
//
// It is as quick as such a graph can be made for one thread that inserts: no lock, records and edges from
// pools without one, records counted by reference so that memory is used again. It has no errors and no
// priorities. With `kInline` a task that ends goes on itself with one that waited for it, so that of a chain
// TBB sees one task alone; without, TBB gets each task that can run.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "shapes.hpp"

namespace shapes {

struct Node;

/// In the list of a task's successors, or of a datum's readers.
struct Edge {
    Node* node = nullptr;
    Edge* next = nullptr;
};

struct Node {
    std::atomic<Edge*> successors{nullptr};
    std::atomic<int> waits_for{0};
    std::atomic<int> references{0};  ///< by data, and one until it has run
    void (*body)(void* closure) = nullptr;
    alignas(8) std::byte closure[24];
    Node* next = nullptr;  ///< in the pool
};

/// Objects that one thread takes and any gives back, chained by `next`.
template <class T>
class Pool {
  public:
    T& take() {
        if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
        if (free_ == nullptr) add_block();
        T& object = *free_;
        free_ = object.next;
        return object;
    }
    /// By the thread that takes.
    void put_back(T& object) {
        object.next = free_;
        free_ = &object;
    }
    void give(T& first, T& last) {
        last.next = returned_.load(std::memory_order_relaxed);
        while (!returned_.compare_exchange_weak(last.next, &first, std::memory_order_release,
                                                std::memory_order_relaxed)) {
        }
    }

  private:
    void add_block() {
        constexpr size_t kBlock = 256;
        blocks_.push_back(std::make_unique<T[]>(kBlock));
        for (size_t i = kBlock; i-- > 0;) put_back(blocks_.back()[i]);
    }

    T* free_ = nullptr;
    alignas(64) std::atomic<T*> returned_{nullptr};
    std::vector<std::unique_ptr<T[]>> blocks_;
};

template <bool kInline>
class Tbb {
  public:
    struct Datum {
        int element = 0;
        Node* writer = nullptr;
        Edge* readers = nullptr;  ///< since that writer
        int reader_count = 0;
    };

    explicit Tbb(int workers)
        : limit_(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(workers)) {}

    std::vector<Datum> data(int count) { return std::vector<Datum>(static_cast<size_t>(count)); }
    void insert() {
        group_.run([] { kernel(); });
    }
    void insert(Datum& written) {
        add({}, written, [&element = written.element] { use(element); });
    }
    void insert(Datum& read, Datum& written) {
        Datum* const reads[] = {&read};
        add(reads, written, [&one = read.element, &element = written.element] { use(one, element); });
    }
    void insert(Datum& read, Datum& also_read, Datum& written) {
        Datum* const reads[] = {&read, &also_read};
        add(reads, written, [&one = read.element, &two = also_read.element, &element = written.element] {
            use(one, two, element);
        });
    }
    void insert(std::span<Datum* const> reads, Datum& written) {
        add(reads, written, [&element = written.element] { use(element); });
    }
    void wait() { group_.wait(); }
    template <class Function>
    void region(Function function) {
        function();
    }
    /// What data refer to; they are not used again.
    void forget(std::vector<Datum>& data) {
        for (Datum& datum : data) {
            drop_readers(datum);
            if (datum.writer != nullptr) drop(*datum.writer);
        }
    }

  private:
    static Edge* closed() { return reinterpret_cast<Edge*>(uintptr_t{1}); }
    template <class... Elements>
    static void use(Elements&...) {
        kernel();
    }

    template <class Closure>
    void add(std::span<Datum* const> reads, Datum& written, Closure closure) {
        static_assert(sizeof(Closure) <= sizeof(Node::closure));
        const int count = static_cast<int>(reads.size());
        // As many as it can have to wait for; those that have ended are taken off afterwards.
        const int most = count + std::max(1, written.reader_count);
        Node& node = nodes_.take();
        node.successors.store(nullptr, std::memory_order_relaxed);
        node.waits_for.store(most, std::memory_order_relaxed);
        node.references.store(count + 2, std::memory_order_relaxed);
        new (node.closure) Closure(closure);
        node.body = [](void* self) { (*static_cast<Closure*>(self))(); };
        int before = 0;
        for (Datum* datum : reads) before += read(node, *datum);
        before += write(node, written);
        const int ended = most - before;
        if (ended == 0) return;
        if (before == 0 || node.waits_for.fetch_sub(ended, std::memory_order_acq_rel) == ended) spawn(node);
    }
    int read(Node& node, Datum& datum) {
        Edge& reader = edges_.take();
        reader = {&node, datum.readers};
        datum.readers = &reader;
        ++datum.reader_count;
        return datum.writer == nullptr ? 0 : link(*datum.writer, node);
    }
    int write(Node& node, Datum& datum) {
        int before = 0;
        if (datum.readers == nullptr) {
            if (datum.writer != nullptr) before = link(*datum.writer, node);
        } else {
            for (const Edge* reader = datum.readers; reader != nullptr; reader = reader->next)
                before += link(*reader->node, node);
            drop_readers(datum);
        }
        if (datum.writer != nullptr) drop(*datum.writer);
        datum.writer = &node;
        return before;
    }
    void drop_readers(Datum& datum) {
        datum.reader_count = 0;
        while (datum.readers != nullptr) {
            Edge& reader = *datum.readers;
            datum.readers = reader.next;
            drop(*reader.node);
            edges_.put_back(reader);
        }
    }
    void drop(Node& node) {
        if (node.references.fetch_sub(1, std::memory_order_acq_rel) == 1) nodes_.give(node, node);
    }
    /// 1 where `before` has not ended, and 0 else.
    int link(Node& before, Node& node) {
        Edge* head = before.successors.load(std::memory_order_acquire);
        if (head == closed()) return 0;
        Edge& edge = edges_.take();
        edge.node = &node;
        do {
            if (head == closed()) {
                edges_.put_back(edge);
                return 0;
            }
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
            Edge* const edges = node->successors.exchange(closed(), std::memory_order_acq_rel);
            drop(*node);
            node = nullptr;
            Edge* last = nullptr;
            for (Edge* edge = edges; edge != nullptr; edge = edge->next) {
                last = edge;
                if (edge->node->waits_for.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
                if (!kInline || node != nullptr)
                    spawn(*edge->node);
                else
                    node = edge->node;
            }
            if (last != nullptr) edges_.give(*edges, *last);
        }
    }

    tbb::global_control limit_;
    tbb::task_group group_;
    Pool<Node> nodes_;
    Pool<Edge> edges_;
};

}  // namespace shapes
