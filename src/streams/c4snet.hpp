// What stands behind C4SNet.h: data of C boxes as fields of records, and the calls of a box.
#pragma once

#include <exception>
#include <span>
#include <string>

#include "heddle/compat/C4SNet.h"
#include "streams/box.hpp"

namespace heddle::streams {

/// The name of its language in records.
inline constexpr const char* kC4SNet = "C4SNet";

class C4Field final : public FieldValue {
  public:
    /// Takes one reference.
    explicit C4Field(c4snet_data_t* data) : data_(data) {}
    ~C4Field() override { C4SNetFree(data_); }
    C4Field(const C4Field&) = delete;
    C4Field& operator=(const C4Field&) = delete;
    [[nodiscard]] std::string_view interface() const override { return kC4SNet; }
    /// "(int)5", "(double[2])1,2".
    [[nodiscard]] std::string text() const override;
    [[nodiscard]] c4snet_data_t* data() const { return data_; }

  private:
    c4snet_data_t* data_;
};

/// With a reference for the caller. Throws kBadInput for text that is none of C4SNet.
[[nodiscard]] c4snet_data_t* data_of(const Field& field);

/// What the handle of a call points to: what the C box sends goes out through `box`.
class C4Handle {
  public:
    explicit C4Handle(BoxCall& box) : box_(box) {}
    [[nodiscard]] const BoxDefinition& box() const { return box_.box(); }
    /// No exception may cross the C code of a box: it is kept until finish().
    /// Moves the values out.
    void emit(int variant, std::span<BoxValue> values) noexcept;
    /// When the box has returned: throws what went wrong with what it sent.
    void finish() const {
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    BoxCall& box_;
    std::exception_ptr failure_;
};

}  // namespace heddle::streams
