// parallelme::Kernel (seed 004) on a kernel of heddle, for the callbacks of its task.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "../../device_task.hpp"
#include "../parallelme/Buffer.hpp"

namespace parallelme {

class KernelExecutionError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
class KernelConstructionError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
class KernelArgError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Kernel {
  public:
    explicit Kernel(heddle::devices::Kernel& kernel) : kernel_(kernel) {}
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    /// Throws KernelArgError.
    Kernel* setArg(unsigned id, std::shared_ptr<Buffer> buffer) {
        if (buffer == nullptr) throw KernelArgError("an argument of a kernel is a null buffer");
        buffer->copySource();
        buffer->has_data_ = true;
        kernel_.arg(id, heddle::devices::inout(buffer->buffer_));
        return this;
    }
    template <class T>
    requires std::is_trivially_copyable_v<T> Kernel* setArg(unsigned id, T primitive) {
        kernel_.arg(id, primitive);
        return this;
    }

    Kernel* setWorkSize(size_t xDim, size_t yDim = 1, size_t zDim = 1) {
        size_ = {xDim, yDim, zDim};
        kernel_.work(xDim, yDim, zDim);
        return this;
    }
    size_t xDim() const { return size_.x; }
    size_t yDim() const { return size_.y; }
    size_t zDim() const { return size_.z; }

  private:
    heddle::devices::Kernel& kernel_;
    heddle::devices::Extent size_{0, 1, 1};
};

}  // namespace parallelme
