#include "base/environment.hpp"

#include <unistd.h>

#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {
namespace {

/// What getenv() may still go through.
struct Kept {
    std::string entry;  // "" where none is new
    std::vector<char*> array;
    Kept* before = nullptr;
};
std::atomic<Kept*> last_kept{nullptr};

void keep(Kept* one) {
    one->before = last_kept;
    while (!last_kept.compare_exchange_weak(one->before, one)) {
    }
}

bool is_of(const char* entry, std::string_view name) {
    const std::string_view pair = entry;
    return pair.size() > name.size() && pair[name.size()] == '=' && pair.starts_with(name);
}

/// Without the variable `name`, if it is not empty, and with `entry`, if that is not.
void replace(std::string_view name, std::string entry) {
    auto* const fresh = new Kept{.entry = std::move(entry), .array = {}};
    // Others change them too: another plug-in, which has this code once more.
    const std::atomic_ref<char**> variables(environ);
    char** before = variables;
    do {
        fresh->array.clear();
        for (char** one = before; one != nullptr && *one != nullptr; ++one)
            if (name.empty() || !is_of(*one, name)) fresh->array.push_back(*one);
        if (!fresh->entry.empty()) fresh->array.push_back(fresh->entry.data());
        fresh->array.push_back(nullptr);
    } while (!variables.compare_exchange_strong(before, fresh->array.data()));
    keep(fresh);
}

}  // namespace

void set_variable(const std::string& name, const std::string& value) {
    replace(name, name + "=" + value);
}

void unset_variable(const std::string& name) {
    replace(name, "");
}

void keep_variables() {
    replace("", "");
}

}  // namespace heddle
