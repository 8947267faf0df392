#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace roost::tools {

/// One column of rows of fields; the fields must not move.
class text_column {
 public:
  text_column() = default;
  text_column(std::span<const std::string_view> fields, std::size_t column = 0, std::size_t columns = 1)
      : first_(fields.data() + column), stride_(columns), size_(fields.size() / columns) {}
  template <class Allocator>
  text_column(const std::vector<std::string_view, Allocator>& fields)
      : text_column(std::span<const std::string_view>(fields)) {}

  std::size_t size() const { return size_; }
  std::string_view operator[](std::size_t row) const { return first_[row * stride_]; }
  const std::string_view* data() const { return first_; }
  std::size_t step() const { return stride_; }

 private:
  const std::string_view* first_ = nullptr;
  std::size_t stride_ = 1, size_ = 0;
};

}  // namespace roost::tools
