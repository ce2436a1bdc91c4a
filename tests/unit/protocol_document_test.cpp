// docs/PROTOCOL.md against protocol.h: every size, offset and number that it names, and none left out.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "cores/protocol.h"

namespace {

struct Place {
    size_t offset, bytes;
    bool operator==(const Place&) const = default;
};
void PrintTo(const Place& place, std::ostream* out) {
    *out << place.bytes << " bytes at " << place.offset;
}
struct Layout {
    size_t bytes;
    std::map<std::string, Place> fields;
};

#define FIELD(type, name)                                           \
    {                                                               \
#name, {                                                    \
            offsetof(type, name), sizeof(std::declval<type>().name) \
        }                                                           \
    }

const std::map<std::string, Layout>& layouts() {
    static const std::map<std::string, Layout> all = {
        {"heddle_header",
         {sizeof(heddle_header),
          {FIELD(heddle_header, magic), FIELD(heddle_header, version), FIELD(heddle_header, type),
           FIELD(heddle_header, bytes), FIELD(heddle_header, reserved)}}},
        {"heddle_hello",
         {sizeof(heddle_hello),
          {FIELD(heddle_hello, kind), FIELD(heddle_hello, mode), FIELD(heddle_hello, demand),
           FIELD(heddle_hello, min_cpus), FIELD(heddle_hello, max_cpus), FIELD(heddle_hello, weight),
           FIELD(heddle_hello, features), FIELD(heddle_hello, reserved), FIELD(heddle_hello, allowed),
           FIELD(heddle_hello, held), FIELD(heddle_hello, owned), FIELD(heddle_hello, name)}}},
        {"heddle_welcome",
         {sizeof(heddle_welcome),
          {FIELD(heddle_welcome, client), FIELD(heddle_welcome, cpus), FIELD(heddle_welcome, owners)}}},
        {"heddle_refused",
         {sizeof(heddle_refused), {FIELD(heddle_refused, code), FIELD(heddle_refused, text)}}},
        {"heddle_epoch_message", {sizeof(heddle_epoch_message), {FIELD(heddle_epoch_message, epoch)}}},
        {"heddle_peer", {sizeof(heddle_peer), {FIELD(heddle_peer, client)}}},
        {"heddle_limits",
         {sizeof(heddle_limits),
          {FIELD(heddle_limits, min_cpus), FIELD(heddle_limits, max_cpus), FIELD(heddle_limits, weight)}}},
        {"heddle_status_head",
         {sizeof(heddle_status_head),
          {FIELD(heddle_status_head, pid), FIELD(heddle_status_head, cpus),
           FIELD(heddle_status_head, clients), FIELD(heddle_status_head, uptime_us),
           FIELD(heddle_status_head, used_us), FIELD(heddle_status_head, lent_us),
           FIELD(heddle_status_head, idle_us), FIELD(heddle_status_head, policy)}}},
        {"heddle_status_cpu_list",
         {sizeof(heddle_status_cpu_list),
          {FIELD(heddle_status_cpu_list, count), FIELD(heddle_status_cpu_list, reserved),
           FIELD(heddle_status_cpu_list, cpu)}}},
        {"heddle_status_client",
         {sizeof(heddle_status_client),
          {FIELD(heddle_status_client, client), FIELD(heddle_status_client, pid),
           FIELD(heddle_status_client, uid), FIELD(heddle_status_client, demand),
           FIELD(heddle_status_client, min_cpus), FIELD(heddle_status_client, max_cpus),
           FIELD(heddle_status_client, weight), FIELD(heddle_status_client, target),
           FIELD(heddle_status_client, away), FIELD(heddle_status_client, fenced),
           FIELD(heddle_status_client, cpu_time_us), FIELD(heddle_status_client, granted),
           FIELD(heddle_status_client, owned), FIELD(heddle_status_client, name)}}},
        {"heddle_status_component",
         {sizeof(heddle_status_component),
          {FIELD(heddle_status_component, client), FIELD(heddle_status_component, reserved),
           FIELD(heddle_status_component, cpus), FIELD(heddle_status_component, inserted),
           FIELD(heddle_status_component, ended), FIELD(heddle_status_component, name)}}},
        {"heddle_event",
         {sizeof(heddle_event),
          {FIELD(heddle_event, kind), FIELD(heddle_event, client), FIELD(heddle_event, cpu),
           FIELD(heddle_event, value), FIELD(heddle_event, time_ns), FIELD(heddle_event, name)}}},
        {"heddle_grant_page",
         {sizeof(heddle_grant_page),
          {FIELD(heddle_grant_page, magic), FIELD(heddle_grant_page, version),
           FIELD(heddle_grant_page, epoch), FIELD(heddle_grant_page, contended),
           FIELD(heddle_grant_page, noticed), FIELD(heddle_grant_page, count),
           FIELD(heddle_grant_page, leaving), FIELD(heddle_grant_page, fenced),
           FIELD(heddle_grant_page, mask), FIELD(heddle_grant_page, successor),
           FIELD(heddle_grant_page, lender)}}},
        {"heddle_client_page",
         {sizeof(heddle_client_page),
          {FIELD(heddle_client_page, demand), FIELD(heddle_client_page, together),
           FIELD(heddle_client_page, since_ns), FIELD(heddle_client_page, meeting),
           FIELD(heddle_client_page, widened), FIELD(heddle_client_page, witness),
           FIELD(heddle_client_page, reserved_1), FIELD(heddle_client_page, sleepers),
           FIELD(heddle_client_page, watched), FIELD(heddle_client_page, reserved_2),
           FIELD(heddle_client_page, release), FIELD(heddle_client_page, bell),
           FIELD(heddle_client_page, component), FIELD(heddle_client_page, user),
           FIELD(heddle_client_page, inserted), FIELD(heddle_client_page, ended)}}},
    };
    return all;
}

#define NUMBER(name) \
    { #name, name }
const std::map<std::string, long> kNumbers = {NUMBER(HEDDLE_PROTOCOL_MAGIC), NUMBER(HEDDLE_PROTOCOL_VERSION),
                                              NUMBER(HEDDLE_MAX_CPUS),       NUMBER(HEDDLE_NAME_BYTES),
                                              NUMBER(HEDDLE_TEXT_BYTES),     NUMBER(HEDDLE_MESSAGE_BYTES),
                                              NUMBER(HEDDLE_PAGE_BYTES),     NUMBER(HEDDLE_STATUS_CPUS),
                                              NUMBER(HEDDLE_COMPONENTS),     NUMBER(HEDDLE_COMPONENT_BYTES),
                                              NUMBER(HEDDLE_HELD),           NUMBER(HEDDLE_LENT),
                                              NUMBER(HEDDLE_TAKEN)};
#define TYPE(name) \
    { #name, HEDDLE_##name }
const std::map<std::string, long> kTypes = {TYPE(HELLO),
                                            TYPE(WELCOME),
                                            TYPE(REFUSED),
                                            TYPE(DEMAND),
                                            TYPE(CHANGED),
                                            TYPE(LEFT),
                                            TYPE(LIMITS),
                                            TYPE(STATUS),
                                            TYPE(STATUS_HEAD),
                                            TYPE(STATUS_CPU_LIST),
                                            TYPE(STATUS_CLIENT),
                                            TYPE(STATUS_END),
                                            TYPE(WATCH),
                                            TYPE(EVENT),
                                            TYPE(MAPPED),
                                            TYPE(RELEASED),
                                            TYPE(PEER),
                                            TYPE(PEER_GONE),
                                            TYPE(STATUS_COMPONENT),
                                            TYPE(COUNT)};

struct Document {
    std::map<std::string, Layout> layouts;
    std::map<std::string, long> numbers, types;
    std::map<std::string, std::pair<size_t, std::string>> messages;  // by type: bytes and layout

    explicit Document(const std::string& path) {
        const std::regex layout("<!-- layout: (\\w+) (\\d+) -->");
        const std::regex field("\\| (\\d+) \\| (\\d+) \\| `(\\w+)` \\|.*");
        const std::regex number("\\| `(HEDDLE_\\w+)` \\| (\\d+) \\|.*");
        const std::regex type("\\| (\\w+) \\| (\\d+) \\| \\w+ \\| (\\d+) \\| `(\\w+)` \\|");
        std::ifstream file(path);
        std::smatch found;
        Layout* current = nullptr;
        for (std::string line; std::getline(file, line);) {
            if (std::regex_match(line, found, layout)) {
                current = &layouts[found[1]];
                current->bytes = std::stoul(found[2]);
            } else if (std::regex_match(line, found, field) && current != nullptr) {
                current->fields[found[3]] = {std::stoul(found[1]), std::stoul(found[2])};
            } else if (std::regex_match(line, found, number)) {
                numbers[found[1]] = std::stol(found[2]);
            } else if (std::regex_match(line, found, type)) {
                types[found[1]] = std::stol(found[2]);
                messages[found[1]] = {std::stoul(found[3]), found[4]};
            }
        }
    }
};

const Document& document() {
    static const Document read(HEDDLE_TEST_DATA "/../docs/PROTOCOL.md");
    return read;
}

TEST(ProtocolDocument, LayoutsAreThoseOfTheHeader) {
    ASSERT_EQ(document().layouts.size(), layouts().size());
    for (const auto& [name, layout] : layouts()) {
        SCOPED_TRACE(name);
        ASSERT_TRUE(document().layouts.contains(name));
        const Layout& documented = document().layouts.at(name);
        EXPECT_EQ(documented.bytes, layout.bytes);
        EXPECT_EQ(documented.fields, layout.fields);
    }
}

/// A field that was added to a struct and not to the table above would leave a hole in it.
TEST(ProtocolDocument, FieldsLeaveNoHoles) {
    for (const auto& [name, layout] : layouts()) {
        std::map<size_t, size_t> ends;
        for (const auto& [field, place] : layout.fields) ends[place.offset] = place.offset + place.bytes;
        size_t reached = ends.begin()->first == 0 ? 0 : sizeof(heddle_header);
        for (const auto& [offset, end] : ends) {
            EXPECT_LE(offset - reached, offset % 8 == 0 ? 4U : 0U) << name << " at " << reached;
            reached = end;
        }
        EXPECT_EQ(layout.bytes - reached, 0U) << name;
    }
}

TEST(ProtocolDocument, NumbersAndTypesAreThoseOfTheHeader) {
    EXPECT_EQ(document().numbers, kNumbers);
    EXPECT_EQ(document().types, kTypes);
    for (const auto& [type, message] : document().messages) {
        ASSERT_TRUE(layouts().contains(message.second)) << type;
        EXPECT_EQ(message.first, layouts().at(message.second).bytes) << type;
        EXPECT_LE(message.first, size_t{HEDDLE_MESSAGE_BYTES}) << type;
    }
}

}  // namespace
