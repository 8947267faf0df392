#pragma once

#include <deque>
#include <memory>

#include "../include/roost.h"
#include "roost/columns/arrow.hpp"

// The data of the functions of roost.h, and the interface of places.

/// Columns of Arrow's structs, which it owns.
struct roost_table {
  roost::arrow_owner<ArrowSchema> type;
  std::deque<roost::arrow_owner<ArrowArray>> chunks;  // with stable addresses
  roost::arrow_table columns;
  int device = -1;        ///< of CUDA; -1: memory of the CPU
  void* event = nullptr;  ///< work on the device first waits for it; or null
};

struct roost_index {
  int device = -1;
  virtual ~roost_index() = default;
  virtual void find(const roost_table& queries, ArrowDeviceArray* rows) const = 0;
};

struct roost_groups {
  int device = -1;
  virtual ~roost_groups() = default;
  virtual std::size_t size() const = 0;
  virtual void first(ArrowDeviceArray* rows) const = 0;
  virtual void counts(ArrowDeviceArray* counts) const = 0;
  virtual void reduce(const roost_table& values, int how, ArrowSchema* schema,
                      ArrowDeviceArray* result) const = 0;
};

namespace roost::c {

/// The functions of roost.h for a place. Each writes its results last, so that none is written if it throws.
struct operations {
  virtual ~operations() = default;
  virtual void unique(const roost_table& table, ArrowDeviceArray* first) const = 0;
  virtual void factorize(const roost_table& table, bool drops_nulls, ArrowDeviceArray* numbers,
                         ArrowDeviceArray* first) const = 0;
  virtual void value_counts(const roost_table& table, ArrowDeviceArray* first,
                            ArrowDeviceArray* counts) const = 0;
  virtual void duplicated(const roost_table& table, bool keeps_first, ArrowDeviceArray* result) const = 0;
  virtual void isin(const roost_table& table, const roost_table& values, null_equality nulls,
                    ArrowDeviceArray* result) const = 0;
  virtual void join(const roost_table& left, const roost_table& right, int how, null_equality nulls,
                    ArrowDeviceArray* left_rows, ArrowDeviceArray* right_rows) const = 0;
  virtual void take(const roost_table& table, const ArrowDeviceArray& rows, ArrowSchema* schema,
                    ArrowDeviceArray* result) const = 0;
  virtual std::unique_ptr<roost_index> index(const roost_table& table, null_equality nulls) const = 0;
  virtual std::unique_ptr<roost_groups> groups(const roost_table& keys, bool drops_nulls) const = 0;
};

/// For the CPU. Throws invalid_argument for a negative number of threads.
const operations& at_host();
void set_threads(int threads);
/// For a GPU. Throws device_error if there is none, or the library has no CUDA.
const operations& at_cuda(int device);

}  // namespace roost::c
