// parallelme::Buffer (seed 004) on a buffer of heddle. A source is kept as a pointer, and copied when its
// data is first asked for, by a kernel or copyTo(). One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>

#include "../../device_buffer.hpp"
#include "../../error.hpp"

namespace parallelme {

class Kernel;

class BufferConstructionError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
class BufferCopyError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
class BufferEmptyError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Buffer {
  public:
    enum Type {
        BYTE,
        BYTE2,
        BYTE4,
        RGBA,
        CHAR,
        CHAR2,
        CHAR4,
        SHORT,
        SHORT2,
        SHORT4,
        INT,
        INT2,
        INT4,
        FLOAT,
        FLOAT2,
        FLOAT4
    };

    /// Throws BufferConstructionError.
    explicit Buffer(size_t size) {
        try {
            buffer_ = std::make_shared<heddle::devices::Buffer>(size);
        } catch (const heddle::Error& error) {
            throw BufferConstructionError(error.what());
        }
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    /// Bytes of so many elements.
    static size_t sizeGenerator(size_t numElements, Type type) {
        switch (type) {
            case BYTE:
            case CHAR:
                return numElements;
            case BYTE2:
            case CHAR2:
            case SHORT:
                return 2 * numElements;
            case BYTE4:
            case RGBA:
            case CHAR4:
            case SHORT2:
            case INT:
            case FLOAT:
                return 4 * numElements;
            case SHORT4:
            case INT2:
            case FLOAT2:
                return 8 * numElements;
            case INT4:
            case FLOAT4:
                return 16 * numElements;
        }
        return 0;
    }

    size_t size() const { return buffer_->size(); }

    /// size() bytes at `host`, which stay there until they were asked for.
    void setSource(void* host) { source_ = host; }

    /// Throws BufferEmptyError where nobody has given it data, BufferCopyError.
    void copyTo(void* host) {
        copySource();
        if (!has_data_) throw BufferEmptyError("a buffer is copied from that was never given data");
        try {
            buffer_->read(host, size());
        } catch (const heddle::Error& error) {
            throw BufferCopyError(error.what());
        }
    }

  private:
    friend class Kernel;

    void copySource() {
        if (source_ == nullptr) return;
        try {
            buffer_->write(std::exchange(source_, nullptr), size());
        } catch (const heddle::Error& error) {
            throw BufferCopyError(error.what());
        }
        has_data_ = true;
    }

    std::shared_ptr<heddle::devices::Buffer> buffer_;
    void* source_ = nullptr;
    bool has_data_ = false;
};

}  // namespace parallelme
