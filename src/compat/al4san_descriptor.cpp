// AL4SAN's descriptors: matrices of tiles, and where their tiles are.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

#include "compat/al4san.hpp"

namespace heddle::al4san {
namespace {

std::atomic<int> descriptors_made{0};

size_t element_bytes(unsigned int type) {
    switch (type) {
        case Al4sanByte:
            return 1;
        case Al4sanInteger:
        case Al4sanRealFloat:
            return 4;
        case Al4sanRealDouble:
        case Al4sanComplexFloat:
            return 8;
        case Al4sanComplexDouble:
            return 16;
    }
    refuse(AL4SAN_ERR_ILLEGAL_VALUE, fmt::format("there is no type {} of elements", type));
}

size_t in_type(int value) {
    return static_cast<size_t>(value);
}

int tiles(int elements, int tile) {
    return elements / tile + (elements % tile != 0 ? 1 : 0);
}

void check(const AL4SAN_desc_t& desc) {
    const auto complain = [](const std::string& what) {
        refuse(AL4SAN_ERR_ILLEGAL_VALUE, "a descriptor cannot be: " + what);
    };
    (void)element_bytes(desc.dtyp);
    if (desc.mb < 1 || desc.nb < 1) complain(fmt::format("tiles of {} x {}", desc.mb, desc.nb));
    if (int64_t{desc.bsiz} != int64_t{desc.mb} * desc.nb)
        complain(fmt::format("tiles of {} x {} in {} elements", desc.mb, desc.nb, desc.bsiz));
    if (desc.lm < 1 || desc.ln < 1) complain(fmt::format("a matrix of {} x {}", desc.lm, desc.ln));
    if (desc.i < 0 || desc.j < 0 || desc.m < 0 || desc.n < 0 || desc.i > desc.lm - desc.m ||
        desc.j > desc.ln - desc.n)
        complain(fmt::format("{} x {} elements from ({}, {}) on in a matrix of {} x {}", desc.m, desc.n,
                             desc.i, desc.j, desc.lm, desc.ln));
    if (desc.i % desc.mb != 0 || desc.j % desc.nb != 0)
        complain(fmt::format("a submatrix from ({}, {}) on, within a tile of {} x {}", desc.i, desc.j,
                             desc.mb, desc.nb));
    if (desc.p != 1 || desc.q != 1)
        refuse(AL4SAN_ERR_NOT_SUPPORTED,
               fmt::format("a matrix over {} x {} processes: there is one process", desc.p, desc.q));
}

void set_submatrix(AL4SAN_desc_t& desc, int i, int j, int m, int n) {
    desc.i = i;
    desc.j = j;
    desc.m = m;
    desc.n = n;
    desc.mt = m == 0 ? 0 : (i + m - 1) / desc.mb - i / desc.mb + 1;
    desc.nt = n == 0 ? 0 : (j + n - 1) / desc.nb - j / desc.nb + 1;
}

void allocate(AL4SAN_desc_t& desc) {
    size_t elements;
    if (__builtin_mul_overflow(in_type(desc.lm), in_type(desc.ln), &elements) || elements > SIZE_MAX / 16)
        refuse(AL4SAN_ERR_OUT_OF_RESOURCES, "a matrix is more than any memory has");
    desc.mat = std::calloc(elements, element_bytes(desc.dtyp));
    if (desc.mat == nullptr)
        refuse(AL4SAN_ERR_OUT_OF_RESOURCES,
               fmt::format("there is no memory for a matrix of {} x {}", desc.lm, desc.ln));
    desc.alloc_mat = 1;
}

struct Layout {
    void* (*address)(const AL4SAN_desc_t*, int, int);
    int (*leading)(const AL4SAN_desc_t*, int);
    int (*rank)(const AL4SAN_desc_t*, int, int);
};

void init(AL4SAN_desc_t& desc, void* mat, al4san_flttype_t type, int mb, int nb, int bsiz, int lm, int ln,
          int i, int j, int m, int n, int p, int q, Layout layout) {
    Context& context = Context::here();
    desc = {};
    desc.get_blkaddr = layout.address != nullptr ? layout.address : al4san_getaddr_ccrb;
    desc.get_blkldd = layout.leading != nullptr ? layout.leading : al4san_getblkldd_ccrb;
    desc.get_rankof = layout.rank != nullptr ? layout.rank : al4san_getrankof_2d;
    desc.styp = desc.get_blkaddr == al4san_getaddr_cm ? Al4sanCM : Al4sanCCRB;
    desc.dtyp = static_cast<decltype(desc.dtyp)>(type);
    desc.mb = mb;
    desc.nb = nb;
    desc.bsiz = bsiz;
    desc.lm = lm;
    desc.ln = ln;
    desc.i = i;
    desc.j = j;
    desc.m = m;
    desc.n = n;
    desc.p = p;
    desc.q = q;
    check(desc);
    set_submatrix(desc, i, j, m, n);
    desc.lmt = desc.llmt = tiles(lm, mb);
    desc.lnt = desc.llnt = tiles(ln, nb);
    desc.llm = lm;
    desc.lln = ln;
    desc.llm1 = lm / mb;
    desc.lln1 = ln / nb;
    const size_t full_columns = in_type(ln - ln % nb);
    desc.A21 = in_type(lm - lm % mb) * full_columns;
    desc.A12 = in_type(lm % mb) * full_columns + desc.A21;
    desc.A22 = in_type(lm - lm % mb) * in_type(ln % nb) + desc.A12;
    desc.id = descriptors_made.fetch_add(1);
    desc.use_mat = 1;
    desc.mat = mat;
    // Memory is the system's to page out; all of a matrix is there, and a tile is memory when it is touched.
    if (mat == AL4SAN_MAT_ALLOC_GLOBAL || mat == AL4SAN_MAT_ALLOC_TILE || mat == AL4SAN_MAT_OOC)
        allocate(desc);
    desc.schedopt = &desc;
    context.add_descriptor(desc);
}

void free_memory(AL4SAN_desc_t& desc) {
    if (desc.alloc_mat == 1) std::free(desc.mat);
    desc.mat = nullptr;
    desc.alloc_mat = 0;
}

template <class Init>
int create(AL4SAN_desc_t** place, Init init_it) {
    return answer([&] {
        if (place == nullptr) refuse(AL4SAN_ERR_UNALLOCATED, "there is no place for the descriptor");
        *place = nullptr;
        auto desc = std::make_unique<AL4SAN_desc_t>();
        init_it(*desc);
        *place = desc.release();
    });
}

AL4SAN_desc_t& given(AL4SAN_desc_t* const* place) {
    if (place == nullptr || *place == nullptr)
        refuse(AL4SAN_ERR_UNALLOCATED, "there is no descriptor: it is NULL, or was destroyed");
    return **place;
}

void* tile(const AL4SAN_desc_t* desc, int m, int n) {
    return desc->get_blkaddr(desc, m, n);
}

void* at(const AL4SAN_desc_t* desc, size_t elements) {
    return static_cast<std::byte*>(desc->mat) + elements * element_bytes(desc->dtyp);
}

}  // namespace
}  // namespace heddle::al4san

using namespace heddle::al4san;

int AL4SAN_Element_Size(int type) {
    int bytes = AL4SAN_ERR_ILLEGAL_VALUE;
    (void)answer([&] { bytes = static_cast<int>(element_bytes(static_cast<unsigned int>(type))); });
    return bytes;
}

int al4san_desc_init(AL4SAN_desc_t* desc, void* mat, al4san_flttype_t dtyp, int mb, int nb, int bsiz, int lm,
                     int ln, int i, int j, int m, int n, int p, int q,
                     void* (*get_blkaddr)(const AL4SAN_desc_t*, int, int),
                     int (*get_blkldd)(const AL4SAN_desc_t*, int),
                     int (*get_rankof)(const AL4SAN_desc_t*, int, int)) {
    return answer([&] {
        init(given(&desc), mat, dtyp, mb, nb, bsiz, lm, ln, i, j, m, n, p, q,
             {get_blkaddr, get_blkldd, get_rankof});
    });
}

int AL4SAN_Desc_Create_User(AL4SAN_desc_t** desc, void* mat, al4san_flttype_t dtyp, int mb, int nb, int bsiz,
                            int lm, int ln, int i, int j, int m, int n, int p, int q,
                            void* (*get_blkaddr)(const AL4SAN_desc_t*, int, int),
                            int (*get_blkldd)(const AL4SAN_desc_t*, int),
                            int (*get_rankof)(const AL4SAN_desc_t*, int, int)) {
    return create(desc, [&](AL4SAN_desc_t& made) {
        init(made, mat, dtyp, mb, nb, bsiz, lm, ln, i, j, m, n, p, q, {get_blkaddr, get_blkldd, get_rankof});
    });
}

int AL4SAN_Desc_Create(AL4SAN_desc_t** desc, void* mat, al4san_flttype_t dtyp, int mb, int nb, int bsiz,
                       int lm, int ln, int i, int j, int m, int n, int p, int q) {
    return AL4SAN_Desc_Create_User(desc, mat, dtyp, mb, nb, bsiz, lm, ln, i, j, m, n, p, q, nullptr, nullptr,
                                   nullptr);
}

int AL4SAN_Desc_Create_OOC_User(AL4SAN_desc_t** desc, al4san_flttype_t dtyp, int mb, int nb, int bsiz, int lm,
                                int ln, int i, int j, int m, int n, int p, int q,
                                int (*get_rankof)(const AL4SAN_desc_t*, int, int)) {
    return AL4SAN_Desc_Create_User(desc, AL4SAN_MAT_OOC, dtyp, mb, nb, bsiz, lm, ln, i, j, m, n, p, q,
                                   nullptr, nullptr, get_rankof);
}

int AL4SAN_Desc_Create_OOC(AL4SAN_desc_t** desc, al4san_flttype_t dtyp, int mb, int nb, int bsiz, int lm,
                           int ln, int i, int j, int m, int n, int p, int q) {
    return AL4SAN_Desc_Create_OOC_User(desc, dtyp, mb, nb, bsiz, lm, ln, i, j, m, n, p, q, nullptr);
}

int AL4SAN_Matrix_Create(AL4SAN_desc_t** desc, void* mat, al4san_flttype_t dtyp, int order, int mb, int nb,
                         int bld, int lm, int ln, int ld) {
    return create(desc, [&](AL4SAN_desc_t& made) {
        if (order != AL4SAN_Col_Major)
            refuse(AL4SAN_ERR_NOT_SUPPORTED, "matrices by rows: AL4SAN_Col_Major is what there is");
        const bool in_place = bld != mb && bld == ld && ld == lm;
        if (bld != mb && !in_place)
            refuse(AL4SAN_ERR_NOT_SUPPORTED,
                   fmt::format(
                       "tiles with a leading dimension of {}: it can be mb ({}), of contiguous tiles, or "
                       "lm ({}), of a column-major matrix",
                       bld, mb, lm));
        const Layout column_major{al4san_getaddr_cm, al4san_getblkldd_cm, nullptr};
        if (mb < 1 || nb < 1 || int64_t{mb} * nb > INT_MAX)
            refuse(AL4SAN_ERR_ILLEGAL_VALUE, fmt::format("tiles cannot be {} x {}", mb, nb));
        const Context& context = Context::here();
        init(made, mat, dtyp, mb, nb, mb * nb, lm, ln, 0, 0, lm, ln, context.prows, context.pcols,
             in_place ? column_major : Layout{});
    });
}

int AL4SAN_Vector_Create(AL4SAN_desc_t** desc, void* vec, al4san_flttype_t dtyp, int mb, int lm) {
    const AL4SAN_context_t* const context = al4san_context_self();
    const int p = context == nullptr ? 1 : context->prows, q = context == nullptr ? 1 : context->pcols;
    return AL4SAN_Desc_Create(desc, vec, dtyp, mb, 1, mb, lm, 1, 0, 0, lm, 1, p, q);
}

int AL4SAN_Scaler_Create(AL4SAN_desc_t** desc, void* scaler, al4san_flttype_t dtyp) {
    return AL4SAN_Desc_Create(desc, scaler, dtyp, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1);
}

int AL4SAN_Desc_Destroy(AL4SAN_desc_t** desc) {
    return answer([&] {
        AL4SAN_desc_t& one = given(desc);
        if (Context::of_process() != nullptr) Context::here().forget_tiles(one);
        free_memory(one);
        delete std::exchange(*desc, nullptr);
    });
}

int AL4SAN_Desc_Discharge(AL4SAN_desc_t** desc) {
    return answer([&] { Context::here().forget_tiles(given(desc)); });
}

void al4san_desc_destroy(AL4SAN_desc_t* desc) {
    (void)answer([&] {
        AL4SAN_desc_t& one = given(&desc);
        if (Context::of_process() != nullptr) Context::here().forget_tiles(one);
        free_memory(one);
    });
}

AL4SAN_desc_t* al4san_desc_submatrix(AL4SAN_desc_t* desc, int i, int j, int m, int n) {
    AL4SAN_desc_t* made = nullptr;
    (void)create(&made, [&](AL4SAN_desc_t& part) {
        part = given(&desc);
        part.alloc_mat = 0;  // its memory is the whole matrix'
        ++part.occurences;
        const int row = i + desc->i, column = j + desc->j;
        part.i = row;
        part.j = column;
        part.m = m;
        part.n = n;
        check(part);
        set_submatrix(part, row, column, m, n);
    });
    return made;
}

int al4san_desc_check(const AL4SAN_desc_t* desc) {
    return answer([&] {
        if (desc == nullptr) refuse(AL4SAN_ERR_UNALLOCATED, "there is no descriptor");
        check(*desc);
    });
}

int AL4SAN_Desc_Acquire(AL4SAN_desc_t* desc) {
    return answer([&] { Context::here().wait_for_tiles(given(&desc)); });
}

int AL4SAN_Desc_Release(AL4SAN_desc_t* desc) {
    return answer([&] { (void)given(&desc); });
}

void AL4SAN_Free(void* pointer, size_t) {
    std::free(pointer);
}

int al4san_desc_islocal(const AL4SAN_desc_t*, int, int) {
    return 1;
}

void* al4san_getaddr_ccrb(const AL4SAN_desc_t* desc, int m, int n) {
    const size_t row = in_type(m + desc->i / desc->mb), column = in_type(n + desc->j / desc->nb);
    const bool lower = row >= in_type(desc->llm1), right = column >= in_type(desc->lln1);
    if (lower && right) return at(desc, desc->A22);
    if (lower) return at(desc, desc->A21 + in_type(desc->llm % desc->mb) * in_type(desc->nb) * column);
    if (right) return at(desc, desc->A12 + in_type(desc->mb) * in_type(desc->lln % desc->nb) * row);
    return at(desc, in_type(desc->bsiz) * (row + in_type(desc->llm1) * column));
}

void* al4san_getaddr_cm(const AL4SAN_desc_t* desc, int m, int n) {
    const size_t row = in_type(m + desc->i / desc->mb), column = in_type(n + desc->j / desc->nb);
    return at(desc, in_type(desc->llm) * in_type(desc->nb) * column + in_type(desc->mb) * row);
}

void* al4san_getaddr_diag(const AL4SAN_desc_t* desc, int m, int) {
    return al4san_getaddr_ccrb(desc, m, 0);
}

void* al4san_getaddr_null(const AL4SAN_desc_t*, int, int) {
    return nullptr;
}

int al4san_getblkldd_ccrb(const AL4SAN_desc_t* desc, int m) {
    const bool lower = m + desc->i / desc->mb + 1 == desc->lmt && desc->lm % desc->mb != 0;
    return lower ? desc->lm % desc->mb : desc->mb;
}

int al4san_getblkldd_cm(const AL4SAN_desc_t* desc, int) {
    return desc->llm;
}

int al4san_getrankof_2d(const AL4SAN_desc_t*, int, int) {
    return 0;
}

int al4san_getrankof_2d_diag(const AL4SAN_desc_t*, int, int) {
    return 0;
}

void* AL4SAN_Data_getaddr(const AL4SAN_desc_t* desc, int m, int n) {
    return tile(desc, m, n);
}

void* AL4SAN_Matrix_getaddr(const AL4SAN_desc_t* desc, int m, int n) {
    return tile(desc, m, n);
}

void* AL4SAN_Vector_getaddr(const AL4SAN_desc_t* desc, int m) {
    return tile(desc, m, 0);
}

void* AL4SAN_Scaler_getaddr(const AL4SAN_desc_t* desc) {
    return tile(desc, 0, 0);
}

void AL4SAN_Data_Getaddr(const AL4SAN_desc_t* desc, void** pointer, int m, int n) {
    *pointer = tile(desc, m, n);
}

void AL4SAN_Matrix_Getaddr(const AL4SAN_desc_t* desc, void** pointer, int m, int n) {
    *pointer = tile(desc, m, n);
}

void AL4SAN_Vector_Getaddr(const AL4SAN_desc_t* desc, void** pointer, int m) {
    *pointer = tile(desc, m, 0);
}

void AL4SAN_Scaler_Getaddr(const AL4SAN_desc_t* desc, void** pointer) {
    *pointer = tile(desc, 0, 0);
}
