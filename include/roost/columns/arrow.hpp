#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "roost/columns/columns.hpp"
#include "roost/columns/texts.hpp"

/// \file
/// Arrow columns as keys: columns that polars, pyarrow, DuckDB and others pass through Arrow's C data
/// interface are read in place. Needs the header xxhash.h.

// The structs of https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html and
// CDeviceDataInterface.html, with the names and guards that these pages prescribe.
extern "C" {
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
/// The type of a column.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
/// A column, or a chunk of one.
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;  // -1: not known
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
/// The chunks of a column. The functions return 0, or an errno value.
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);  // a released one after the last
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
#endif
#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE
typedef std::int32_t ArrowDeviceType;
#define ARROW_DEVICE_CPU 1
#define ARROW_DEVICE_CUDA 2
#define ARROW_DEVICE_CUDA_HOST 3
#define ARROW_DEVICE_CUDA_MANAGED 13
/// An array whose buffers are in memory of a device.
struct ArrowDeviceArray {
  struct ArrowArray array;
  std::int64_t device_id;
  ArrowDeviceType device_type;
  void* sync_event;  // of CUDA: a cudaEvent_t* to wait for, or null
  std::int64_t reserved[3];
};
#endif
#ifndef ARROW_C_DEVICE_STREAM_INTERFACE
#define ARROW_C_DEVICE_STREAM_INTERFACE
/// The chunks of a column in memory of a device, as those of ArrowArrayStream.
struct ArrowDeviceArrayStream {
  ArrowDeviceType device_type;
  int (*get_schema)(struct ArrowDeviceArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowDeviceArrayStream*, struct ArrowDeviceArray* out);
  const char* (*get_last_error)(struct ArrowDeviceArrayStream*);
  void (*release)(struct ArrowDeviceArrayStream*);
  void* private_data;
};
#endif
}

namespace roost {

/// Owns one of these structs, and releases it.
template <class Struct>
class arrow_owner {
 public:
  arrow_owner() = default;
  /// Takes it out of its producer's memory, as the specification says.
  explicit arrow_owner(Struct& from) : it_(from) { from.release = nullptr; }
  arrow_owner(arrow_owner&& other) noexcept : arrow_owner(other.it_) {}
  arrow_owner& operator=(arrow_owner&& other) noexcept {
    std::swap(it_, other.it_);
    return *this;
  }
  ~arrow_owner() {
    if (it_.release != nullptr) it_.release(&it_);
  }

  Struct* operator->() { return &it_; }
  Struct* get() { return &it_; }
  const Struct* get() const { return &it_; }
  bool released() const { return it_.release == nullptr; }

 private:
  Struct it_{};
};

/// What the values of a column are, as keys.
struct arrow_type {
  /// How values become keys.
  enum class form : std::uint8_t {
    null,    ///< there are none
    number,  ///< integers, bools, floats; dates, times and durations; decimals of at most 64 bits
    wide,    ///< decimals of 128 bits: two key_columns
    text     ///< texts and bytes
  };
  form made_of = form::null;
  column_type number = column_type::i1;  ///< of form::number: as keys have it
  /// What values mean; values with different meanings are never equal: "numbers", "texts", "bytes", "decimals
  /// of scale 2", or Arrow's name of a type of times, such as "tsu:UTC".
  std::string meaning;

  friend bool operator==(const arrow_type&, const arrow_type&) = default;
};

/// What a column's values are; for a dictionary, the values that its codes stand for. Throws invalid_argument
/// for types that cannot be keys: nested and run-end-encoded types, intervals, decimals of 256 bits,
/// extensions.
inline arrow_type arrow_type_of(const ArrowSchema& type);

/// The type that holds every value of two types. Throws invalid_argument if their values are never equal, or
/// if there is no such type, as for int64 and uint64, or int64 and double. `where`: what the message begins
/// with.
inline arrow_type common_type(const arrow_type& a, const arrow_type& b, const std::string& where = "roost");

/// Whether a column's values are texts or bytes of any length, or a dictionary of these; false for extension
/// types.
inline bool is_arrow_text(const ArrowSchema& type);

/// Adds a column of texts, whose memory must outlive the column that it is added to. Throws invalid_argument
/// for a dictionary code without a value.
inline void add_arrow(text_column& to, const ArrowSchema& type, const ArrowArray& from);

/// The columns of a table, which is a struct array or a stream of these, or a single column. It refers to
/// Arrow's structs, which must outlive it.
class arrow_table {
 public:
  /// Rows of one array.
  struct chunk {
    const ArrowArray* array;
    std::size_t begin, rows;  ///< of the array's buffers
  };
  /// A column: its schema, its type as a key, and its rows.
  struct column {
    const ArrowSchema* schema;
    arrow_type type;
    std::vector<chunk> chunks;
  };

  arrow_table() = default;
  /// A table without rows. Throws invalid_argument for columns that cannot be keys, and names them.
  inline explicit arrow_table(const ArrowSchema& type);
  arrow_table(const ArrowSchema& type, const ArrowArray& rows) : arrow_table(type) { add(rows); }
  /// Adds rows. Throws invalid_argument for an array that is released, for an array of another type, as far
  /// as that can be detected, and for a struct array with nulls.
  inline void add(const ArrowArray& rows);

  std::size_t rows() const { return rows_; }
  std::span<const column> columns() const { return columns_; }
  /// The texts of a column of texts or nulls. Throws as add_arrow.
  inline text_column texts(std::size_t index) const;

 private:
  const ArrowSchema* schema_ = nullptr;
  std::size_t rows_ = 0;
  std::vector<column> columns_;
};

/// Arrow columns as key_columns: those of one table, or of two tables that are compared. Numbers in one chunk
/// are not copied; bools, half floats, dictionaries, several chunks and numbers of two types are converted,
/// decimals of 128 bits become two columns, and texts are numbered. On cuda, the structs are on the host, and
/// their buffers are on the device.
///
///     const roost::arrow_table sales(schema, array);
///     const roost::arrow_keys keys(cpu, {&sales});
///     const roost::column_packing packing(cpu, keys.columns(0));
///     packing.with_keys(cpu, keys.columns(0), [&](const auto& words) { ... });
///
/// May be read by several threads.
template <class Place>
class arrow_keys {
 public:
  /// Throws invalid_argument for tables with different columns, and as common_type does; out_of_memory,
  /// device_error. Asynchronous on cuda.
  arrow_keys(const Place& place, std::initializer_list<const arrow_table*> tables);
  std::span<const key_column> columns(std::size_t table) const { return columns_[table]; }

  /// Adds the key_columns of a column, converted to a type that holds its values. Texts become a column of
  /// std::string_view that point to them, which is not a key: see number_texts.
  void add(const Place& place, std::size_t table, const arrow_table::column& from, const arrow_type& as);
  arrow_keys() : columns_(2) {}

 private:
  void add(const Place& place, std::size_t table, std::span<const std::uint32_t> numbers,
           const text_column& texts);
  template <class T>
  T* keep(array<T, Place>&& memory) {
    memory_.push_back(std::make_shared<array<T, Place>>(std::move(memory)));
    return static_cast<array<T, Place>*>(memory_.back().get())->data();
  }

  key_column read(const Place& place, const arrow_table::column& from, const arrow_type& as,
                  std::byte* values);
  void index_texts_of(const Place& place, std::initializer_list<const arrow_table*> tables, std::size_t c,
                      const arrow_type& as);

  std::vector<std::vector<key_column>> columns_;
  std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace roost

#include "roost/columns/detail/arrow.hpp"
