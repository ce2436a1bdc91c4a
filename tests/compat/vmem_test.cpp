// Programs written as the listings of seed 001 section 4, against vmem.hpp. What was mended in the listings:
// an unbalanced bracket after execute_sync (req).
// Sizes are computed as the listings do it, from int and sizeof, of which clang warns.
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "heddle/compat/vmem.hpp"

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// As many nodes, on ports that no other test process has.
std::vector<vmem::node> nodes_of(int count) {
    std::vector<vmem::node> nodes;
    for (int i = 0; i < count; ++i)
        nodes.push_back({"localhost", static_cast<uint16_t>(1024 + (::getpid() * 8 + i) % 60000)});
    return nodes;
}

enum direction { UP, DOWN, LEFT, RIGHT };

/// The halo swap of section 4.4 on a torus of processes, with the verification of its transfers. Where the
/// parts of the mesh are uneven some have one row or column more than others.
struct halo_swap {
    int const nranks, rank;
    bool const uneven;
    int const width = nranks % 2 == 0 ? 2 : 1, height = nranks / width;
    int const row = rank / width, column = rank % width;
    int const n_local_rows = uneven ? 5 + row % 2 : 8, n_local_cols = uneven ? 7 + column % 2 : 8;
    int const max_n_local_rows = uneven ? 6 : 8, max_n_local_cols = 8;

    int neighbour(direction side) const {
        int const down = side == DOWN ? 1 : side == UP ? height - 1 : 0;
        int const right = side == RIGHT ? 1 : side == LEFT ? width - 1 : 0;
        return (row + down) % height * width + (column + right) % width;
    }
    static double known(int of_rank, int side, int i, int iteration) {
        return of_rank * 1e6 + side * 1e5 + i * 1e3 + iteration;
    }

    template <class SegmentDescription>
    int run(vmem::server& server, SegmentDescription const& description) {
        vmem::in_process_client client(server);
        vmem::collective collective(server);
        int wrong(0);

        vmem::size_t segment_size(2 * nranks * (max_n_local_rows + max_n_local_cols) * sizeof(double));
        vmem::segment_id_t const segment(collective.segment_create(segment_size, description));
        vmem::size_t cache_size(2 * (max_n_local_rows + max_n_local_cols) * sizeof(double));
        // Ranges of different sizes that come and go leave gaps; for those of one size the cache is exactly
        // as large as what is in use in it.
        if (uneven) cache_size += cache_size;
        vmem::cache_id_t const cache(client.in_process_cache_create(cache_size));

        std::map<direction, vmem::data_id_t> global_data;
        for (direction side : {UP, DOWN, LEFT, RIGHT}) {
            int const longest = side == UP || side == DOWN ? max_n_local_cols : max_n_local_rows;
            global_data[side] = collective.allocate(vmem::size_t(nranks * longest * sizeof(double)), segment,
                                                    vmem::prefix_filled_data());
        }

        for (int iteration = 0; iteration < 20; ++iteration) {
            std::vector<vmem::in_process_client::operation_t> req{
                vmem::op::allocate_t(n_local_rows * sizeof(double), cache),
                vmem::op::allocate_t(n_local_rows * sizeof(double), cache),
                vmem::op::allocate_t(n_local_cols * sizeof(double), cache),
                vmem::op::allocate_t(n_local_cols * sizeof(double), cache)};
            auto const ranges(client.execute_sync(req));
            std::vector<vmem::in_process_client::operation_t> puts;
            std::size_t next(0);
            for (direction side : {LEFT, RIGHT, UP, DOWN}) {
                bool const flat = side == UP || side == DOWN;
                int const length = flat ? n_local_cols : n_local_rows;
                vmem::mutable_local_range_t const local_range(
                    boost::get<vmem::mutable_local_range_t>(ranges[next++]));
                std::vector<double> src(static_cast<std::size_t>(length));
                for (int i = 0; i < length; ++i)
                    src[static_cast<std::size_t>(i)] = known(rank, side, i, iteration);
                memcpy(local_range.pointer(), src.data(), local_range.range.size);
                // What goes up is the neighbour's from below.
                direction const from = side == UP ? DOWN : side == DOWN ? UP : side == LEFT ? RIGHT : LEFT;
                vmem::offset_t offset((flat ? max_n_local_cols : max_n_local_rows) * neighbour(side) *
                                      sizeof(double));
                puts.emplace_back(vmem::op::put_and_release_t(
                    local_range, {global_data[from], {offset, local_range.range.size}}));
            }
            client.execute_sync(puts);
            collective.barrier();

            std::vector<vmem::in_process_client::operation_t> gets, releases;
            for (direction side : {LEFT, RIGHT, UP, DOWN}) {
                bool const flat = side == UP || side == DOWN;
                vmem::offset_t offset{client.rank() * (flat ? max_n_local_cols : max_n_local_rows) *
                                      sizeof(double)};
                vmem::global_range_t const global_range{
                    global_data[side],
                    {offset, vmem::size_t{(flat ? n_local_cols : n_local_rows) * sizeof(double)}}};
                gets.emplace_back(vmem::op::get_mutable_t(global_range, cache));
            }
            auto const halos(client.execute_sync(gets));
            next = 0;
            for (direction side : {LEFT, RIGHT, UP, DOWN}) {
                auto const halo(boost::get<vmem::mutable_local_range_t>(halos[next++]));
                double const* const values(static_cast<double const*>(halo.pointer()));
                direction const sent = side == UP ? DOWN : side == DOWN ? UP : side == LEFT ? RIGHT : LEFT;
                for (int i = 0; i < (side == UP || side == DOWN ? n_local_cols : n_local_rows); ++i)
                    wrong += values[i] == known(neighbour(side), sent, i, iteration) ? 0 : 1;
                releases.emplace_back(vmem::op::release_t(halo));
            }
            client.execute_sync(releases);
            collective.barrier();
        }

        client.cache_delete(cache);
        for (auto const& data : global_data) collective.free(data.second);
        collective.segment_delete(segment);
        collective.barrier();
        return wrong;
    }
};

template <class SegmentDescription>
int wrong_halos(int nranks, bool uneven, SegmentDescription const& description) {
    auto const nodes(nodes_of(nranks));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < nranks; ++rank)
        threads.emplace_back([&, rank] {
            vmem::server server(vmem::gaspi::context::params{std::chrono::minutes(1), 12121},
                                vmem::beegfs::context::params{}, nodes,
                                nodes[static_cast<std::size_t>(rank)].port);
            halo_swap swap{nranks, rank, uneven};
            wrong += swap.run(server, description);
        });
    for (std::thread& thread : threads) thread.join();
    return wrong;
}

/// Where servers of this user have found each other by their nodes.
std::set<std::string> meeting_places() {
    std::set<std::string> found;
    std::string const ours("/tmp/heddle-vmem-" + std::to_string(::getuid()) + "-");
    for (auto const& entry : std::filesystem::directory_iterator("/tmp"))
        if (entry.path().string().rfind(ours, 0) == 0) found.insert(entry.path().string());
    return found;
}

TEST(VmemTest, TheHaloSwapOfSection44) {
    auto const before(meeting_places());
    for (int const nranks : {1, 2, 3, 4}) {
        for (bool const uneven : {false, true}) {
            EXPECT_EQ(wrong_halos(nranks, uneven, vmem::shm::equally_distributed_segment_description()), 0);
            EXPECT_EQ(wrong_halos(nranks, uneven, vmem::beegfs::segment_description("/tmp")), 0);
        }
    }
    EXPECT_EQ(meeting_places(), before) << "the servers left theirs behind";
}

/// A program that asks for GASPI runs on what one word names.
TEST(VmemTest, TheSegmentsAreChosenByOneWord) {
    vmem::server server;
    vmem::in_process_client client(server);
    vmem::gaspi::equally_distributed_segment_description const asked(
        vmem::gaspi::communication_buffers(4096, 8));
    for (char const* word : {"shm", "file:/tmp"}) {
        ::setenv("HEDDLE_VMEM_SEGMENTS", word, 1);
        client.segment_delete(client.segment_create(1000, asked));
    }
    ::setenv("HEDDLE_VMEM_SEGMENTS", "tape", 1);
    EXPECT_THAT([&] { client.segment_create(1000, asked); },
                ThrowsMessage<heddle::Error>(HasSubstr("no segments of kind \"tape\"")));
    ::unsetenv("HEDDLE_VMEM_SEGMENTS");
}

/// As section 4.3 instantiates one; and as the prototype names things.
TEST(VmemTest, AServerHasTheFactoriesThatItNames) {
    using namespace intertwine::vmem;
    server_templ<factories<gaspi::context, shm::context>,
                 descriptions<gaspi::equally_distributed_segment_description,
                              shm::equally_distributed_segment_description>>
        dc_server;
    in_process_client client(dc_server);
    EXPECT_THAT(
        [&] { client.segment_create(8, mpi::equally_distributed_segment_description()); },
        ThrowsMessage<heddle::Error>(HasSubstr("no factory for segments of kind mpi: it has gaspi, shm")));
    EXPECT_NO_THROW(client.segment_create(8, shm::equally_distributed_segment_description()));
}

class VmemClientTest : public testing::Test {
  protected:
    vmem::server server_;
    vmem::in_process_client client_{server_};
    vmem::segment_id_t segment_ =
        client_.segment_create(1000, vmem::shm::equally_distributed_segment_description());
    vmem::cache_id_t cache_ = client_.in_process_cache_create(100);
    vmem::data_id_t data_ = client_.allocate(10, segment_, vmem::equally_distributed_data());
    vmem::global_range_t all_{data_, {0, 10}};

    template <class Operation>
    typename Operation::result_type run(Operation const& operation) {
        return boost::get<typename Operation::result_type>(client_.execute_sync(operation));
    }
    vmem::mutable_local_range_t filled(char with) {
        auto const local(run(vmem::op::allocate_t(10, cache_)));
        std::memset(local.pointer(), with, local.range.size);
        return local;
    }
    char first(vmem::const_local_range_t const& local) { return *static_cast<char const*>(local.pointer()); }
};

TEST_F(VmemClientTest, EachOperationHasItsName) {
    using namespace vmem::op;
    run(put_t(filled('a'), all_));
    run(put_and_release_t(filled('b'), all_));
    auto const seen(run(get_const_t(all_, cache_)));
    EXPECT_EQ(first(seen), 'b');
    run(release_t(seen));
    auto const direct(run(get_const_preferring_direct_segment_memory_access_t(all_, cache_)));
    EXPECT_EQ(first(direct), 'b');
    run(release_t(direct));
    auto own(run(get_mutable_preferring_direct_segment_memory_access_t(all_, cache_)));
    run(put_and_set_tag_t(own, all_, 3));
    run(release_t(own));
    run(release_t(run(get_const_with_tag_t(all_, cache_, 3))));
    run(release_t(run(get_const_preferring_direct_segment_memory_access_with_tag_t(all_, cache_, 3))));
    run(release_t(run(get_mutable_preferring_direct_segment_memory_access_with_tag_t(all_, cache_, 3))));
    own = run(get_mutable_with_tag_t(all_, cache_, 3));
    std::memset(own.pointer(), 'c', 10);
    // A part of it, as the workflow systems put.
    vmem::mutable_local_range_t part(own);
    part.range.offset += 4;
    part.range.size = 2;
    run(put_t(part, {data_, {0, 2}}));
    run(put_and_release_and_set_tag_t(own, all_, 4));
    EXPECT_EQ(first(run(get_const_t({data_, {9, 1}}, cache_))), 'c');
    vmem::operation_result_t const nothing(client_.execute_sync(put_t(filled('d'), all_)));
    EXPECT_EQ(boost::get<vmem::void_t>(nothing), vmem::void_t{});
}

TEST_F(VmemClientTest, FuturesAreReadyWhenTheirOperationsHaveEnded) {
    auto waits(client_.execute(vmem::op::get_const_with_tag_t(all_, cache_, 7)));
    EXPECT_EQ(waits.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    run(vmem::op::put_and_release_and_set_tag_t(filled('t'), all_, 7));
    EXPECT_EQ(first(boost::get<vmem::const_local_range_t>(waits.get())), 't');
    std::vector<vmem::operation_t> const two{vmem::op::allocate_t(5, cache_),
                                             vmem::op::allocate_t(101, cache_)};
    auto futures(client_.execute(two));
    EXPECT_EQ(boost::get<vmem::mutable_local_range_t>(futures[0].get()).range.size, 5U);
    EXPECT_THAT([&] { futures[1].get(); },
                ThrowsMessage<heddle::memory::MemoryError>(HasSubstr("101 bytes never fit")));
}

TEST_F(VmemClientTest, BunchesAreRolledBack) {
    std::size_t failed(0), got(0);
    auto const success([&](std::vector<vmem::operation_result_t> results) { got = results.size(); });
    auto const failure([&](vmem::error::multiple<> const& errors) {
        failed = errors.errors().size();
        EXPECT_EQ(errors.operations().at(0), 1U);
        EXPECT_FALSE(errors.may_have_written());
    });
    client_.execute_bunch({vmem::op::allocate_t(60, cache_), vmem::op::allocate_t(60, cache_)}, success,
                          failure);
    EXPECT_EQ(failed, 1U);
    EXPECT_EQ(got, 0U);
    client_.execute_bunch({vmem::op::allocate_t(60, cache_), vmem::op::allocate_t(40, cache_)}, success,
                          failure);
    EXPECT_EQ(got, 2U);
}

TEST_F(VmemClientTest, DistributionsOfOnesOwn) {
    auto const halves([](uint64_t size, std::span<const uint64_t>) {
        return std::vector<heddle::memory::Share>{{0, size / 2}, {0, size - size / 2}};
    });
    EXPECT_NO_THROW(client_.free(client_.allocate(11, segment_, halves)));
    auto const none([](uint64_t, std::span<const uint64_t>) { return std::vector<heddle::memory::Share>{}; });
    EXPECT_THAT([&] { client_.allocate(11, segment_, none); },
                ThrowsMessage<heddle::Error>(HasSubstr("\"the program's own\" places 0 of 11 bytes")));
}

/// A cache's id goes to other programs as text; these are clients by a socket, here of one process.
TEST_F(VmemClientTest, CostsAndPlaces) {
    const vmem::data_id_t data = client_.allocate(100, segment_, vmem::prefix_filled_data{});
    const vmem::global_range_t all{data, {0, 100}};
    // As an agent asks that has no cache of its own.
    const std::vector<vmem::operation_t> wanted{vmem::op::get_const_t(all, vmem::cache_id_t())};
    const std::vector<std::pair<vmem::rank_t, double>> before = client_.transfer_costs(wanted);
    ASSERT_EQ(before.size(), 1u);
    EXPECT_EQ(before[0].first, 0u);
    EXPECT_GT(before[0].second, 0);
    (void)client_.execute_sync(vmem::op::get_const_t(all, cache_));
    EXPECT_EQ(client_.transfer_costs(wanted)[0].second, 0);
    const std::vector<vmem::data_locality_description> places = client_.data_locality({all});
    ASSERT_EQ(places.size(), 1u);
    EXPECT_EQ(places[0].range.data_id, data);
    EXPECT_EQ(places[0].home, 0u);
    EXPECT_EQ(places[0].copies, std::set<vmem::rank_t>{0});
}

TEST_F(VmemClientTest, ClientsByASocketShareACache) {
    std::string const path("/tmp/heddle-vmem-test-" + std::to_string(::getpid()));
    vmem::ipc_server const listens(server_, path);
    vmem::ipc_client one(path), other(path);
    auto const text(one.shareable_cache_create(100).to_string());
    vmem::cache_id_t const cache(vmem::shared_cache_id_t::from_string(text));
    run(vmem::op::put_and_release_t(filled('s'), all_));
    vmem::op::get_const_t const get(all_, cache);
    one.execute_sync(vmem::op::release_t(boost::get<vmem::const_local_range_t>(one.execute_sync(get))));
    EXPECT_EQ(first(boost::get<vmem::const_local_range_t>(other.execute_sync(get))), 's');
    EXPECT_EQ(other.native().statistics({cache.value()}).misses, 1U);
    EXPECT_THAT([&] { vmem::ipc_client nobody(path + "-else"); }, testing::Throws<heddle::Error>());
}

TEST(VmemTypesTest, IdsAndNumbersConvert) {
    vmem::cache_id_t const cache(vmem::cache_id_t::from_string("17"));
    EXPECT_EQ(cache.to_string(), "17");
    EXPECT_NE(cache, vmem::cache_id_t{});
    for (char const* text : {"", "x", "-1", "17 ", "99999999999999999999"})
        EXPECT_THAT([&] { (void)vmem::data_id_t::from_string(text); },
                    ThrowsMessage<heddle::Error>(HasSubstr("is no id")));
    vmem::size_t size(5);
    size += 2;
    EXPECT_EQ(size * 3, 21U);
    EXPECT_THAT([] { vmem::offset_t const offset(-1); },
                ThrowsMessage<heddle::Error>(HasSubstr("cannot be negative")));
}

TEST(VmemNodesTest, NodesThatCannotBe) {
    auto const serve([](std::vector<vmem::node> const& nodes, uint16_t port) {
        vmem::server server({}, {}, nodes, port);
    });
    EXPECT_THAT(
        [&] {
            serve({{"localhost", 2000}}, 2001);
        },
        ThrowsMessage<heddle::Error>(HasSubstr("none of the 1 nodes has this server's port 2001")));
    EXPECT_THAT([&] { serve({}, 2001); }, ThrowsMessage<heddle::Error>(HasSubstr("none of the 0 nodes")));
    EXPECT_THAT(
        [&] {
            serve({{"localhost", 2000}, {"", 2000}}, 2000);
        },
        ThrowsMessage<heddle::Error>(HasSubstr("two nodes have the port 2000")));
    EXPECT_THAT(
        [&] {
            serve({{"localhost", 2000}, {"node17.example", 2000}}, 2000);
        },
        ThrowsMessage<heddle::Error>(HasSubstr("node17.example is another host")));
}

}  // namespace
