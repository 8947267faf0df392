#pragma once

#include <utility>

#include "place.hpp"

// The functions of roost.h for one kind of place; each file compiles some of them, for ROOST_C_PLACE.

#ifndef ROOST_C_PLACE
#if defined(__CUDACC__)
#define ROOST_C_PLACE cuda
#else
#define ROOST_C_PLACE host
#endif
#endif

namespace roost::c {

template <class Place>
class on final : public operations {
 public:
  explicit on(int device) : device_(device) {}
  void unique(const roost_table& table, ArrowDeviceArray* first) const override;
  void factorize(const roost_table& table, bool drops_nulls, ArrowDeviceArray* numbers,
                 ArrowDeviceArray* first) const override;
  void value_counts(const roost_table& table, ArrowDeviceArray* first,
                    ArrowDeviceArray* counts) const override;
  void duplicated(const roost_table& table, bool keeps_first, ArrowDeviceArray* result) const override;
  void isin(const roost_table& table, const roost_table& values, null_equality nulls,
            ArrowDeviceArray* result) const override;
  void join(const roost_table& left, const roost_table& right, int how, null_equality nulls,
            ArrowDeviceArray* left_rows, ArrowDeviceArray* right_rows) const override;
  void take(const roost_table& table, const ArrowDeviceArray& rows, ArrowSchema* schema,
            ArrowDeviceArray* result) const override;
  std::unique_ptr<roost_index> index(const roost_table& table, null_equality nulls) const override;
  std::unique_ptr<roost_groups> groups(const roost_table& keys, bool drops_nulls) const override;

 private:
  int device_;
};

/// Waits for results, and gives the wanted ones to the caller.
template <class Place>
void finish_at(const Place& place, int device,
               std::initializer_list<std::pair<arrow_owner<ArrowArray>*, ArrowDeviceArray*>> results) {
  place.synchronize();
  for (const auto& [from, to] : results) {
    if (to != nullptr) give(*from, to, at_place<Place>::type, device);
  }
}

}  // namespace roost::c
