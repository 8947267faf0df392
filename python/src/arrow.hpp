#pragma once

#include <cstdint>

// The structs of Arrow's C data interface and C stream interface, as the specifications have them:
// https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html.

namespace roost::python::arrow {

/// The type of a column.
struct schema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  schema** children;
  schema* dictionary;
  void (*release)(schema*);
  void* private_data;
};

/// A column, or a chunk of one.
struct array {
  std::int64_t length;
  std::int64_t null_count;  // -1: not known
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  array** children;
  array* dictionary;
  void (*release)(array*);
  void* private_data;
};

/// The chunks of a column. The functions return 0, or a number of errno.
struct stream {
  int (*get_schema)(stream*, schema* result);
  int (*get_next)(stream*, array* result);  // a released one after the last
  const char* (*get_last_error)(stream*);
  void (*release)(stream*);
  void* private_data;
};

/// Owns one of these structs, and releases it.
template <class Struct>
class owner {
 public:
  owner() = default;
  /// Takes it out of a capsule or of its producer's memory, as the specification has it.
  explicit owner(Struct& from) : it_(from) { from.release = nullptr; }
  owner(owner&& other) noexcept : owner(other.it_) {}
  owner& operator=(owner&&) = delete;
  ~owner() {
    if (it_.release != nullptr) it_.release(&it_);
  }

  Struct* operator->() { return &it_; }
  Struct* get() { return &it_; }
  bool released() const { return it_.release == nullptr; }

 private:
  Struct it_{};
};

}  // namespace roost::python::arrow
