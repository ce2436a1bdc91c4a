#include "algebra/lapack.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

// The first is several times faster than the second, which is LAPACK's own and brings its BLAS along.
constexpr std::array kUsual{"libopenblas.so.0", "liblapack.so.3"};

constexpr std::string_view kHow = "apt-get install libopenblas0-openmp, or name a library in HEDDLE_LAPACK";

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

/// What OpenBLAS itself will call: the first of that name in the process, or its own dependency's.
template <class Function>
void find_for(void* library, const char* name, Function& function) {
    if (!find(RTLD_DEFAULT, name, function)) find(library, name, function);
}

/// The name of a function that the library lacks; "" where it has all.
std::string missing(void* library, Lapack& table) {
    const char* name = nullptr;
    const auto has = [&](const char* wanted, auto& function) {
        if (!find(library, wanted, function)) name = wanted;
    };
    has("dgemm_", table.dgemm);
    has("dsyrk_", table.dsyrk);
    has("dtrsm_", table.dtrsm);
    has("dsymm_", table.dsymm);
    has("dsyr2k_", table.dsyr2k);
    has("dsygst_", table.dsygst);
    has("dgeqrt3_", table.dgeqrt3);
    has("dlarfg_", table.dlarfg);
    has("dgemv_", table.dgemv);
    has("dger_", table.dger);
    has("dsymv_", table.dsymv);
    has("dsyr2_", table.dsyr2);
    has("dsterf_", table.dsterf);
    has("dsygvd_", table.dsygvd);
    has("dgeqrf_", table.dgeqrf);
    has("dorgqr_", table.dorgqr);
    has("dgesdd_", table.dgesdd);
    has("dpotrf_", table.dpotrf);
    has("dpotrs_", table.dpotrs);
    return name == nullptr ? "" : name;
}

void find_threads(void* library, Lapack& table) {
    if (!find(library, "openblas_get_parallel", table.openblas_parallel)) return;
    find(library, "openblas_get_num_threads", table.openblas_threads);
    find(library, "openblas_set_num_threads", table.openblas_set_threads);
    find_for(library, "omp_get_max_threads", table.omp_threads);
    find_for(library, "omp_set_num_threads", table.omp_set_threads);
}

Lapack load() {
    const char* chosen = std::getenv("HEDDLE_LAPACK");
    const bool choose = chosen != nullptr && *chosen != '\0';
    std::string reason;
    for (const char* file : kUsual) {
        if (choose) file = chosen;
        Lapack table{};
        table.file = file;
        if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL); library == nullptr) {
            reason = dlerror();
        } else if (const std::string name = missing(library, table); !name.empty()) {
            reason = fmt::format("{} has no {}", file, name);
        } else {
            find_threads(library, table);
            return table;
        }
        if (choose) break;
    }
    throw Error(ErrorCode::kUnavailable,
                fmt::format("there is no LAPACK for tile algorithms: {} ({})", reason, kHow));
}

}  // namespace

const Lapack& lapack() {
    static const Lapack table = load();
    return table;
}

int lapack_size(size_t value) {
    if (value > INT_MAX)
        throw Error(ErrorCode::kLimit, fmt::format("a tile has {} rows or columns: LAPACK counts to {}; "
                                                   "take smaller matrices, or tiles of memory of their own",
                                                   value, INT_MAX));
    return static_cast<int>(value);
}

}  // namespace heddle::algebra
