// StackSpan: a piece of memory for the calls of one fiber, from `bottom` up to, not including, `top`. A
// value.
#pragma once

namespace heddle {

struct StackSpan {
    void* bottom = nullptr;
    void* top = nullptr;
};

}  // namespace heddle
