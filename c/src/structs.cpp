#include "place.hpp"

// Structs of results, the same for all places.

namespace roost::c {
namespace {

template <class Struct>
void release_fields(std::vector<Struct>& fields) {
  for (Struct& field : fields) {
    if (field.release != nullptr) field.release(&field);
  }
}

struct array_memory {
  std::vector<result_buffer> buffers;
  std::vector<const void*> pointers;
  std::vector<ArrowArray> fields;
  std::vector<ArrowArray*> field_pointers;
  ~array_memory() { release_fields(fields); }
};
struct schema_memory {
  std::string format, name;
  std::vector<ArrowSchema> fields;
  std::vector<ArrowSchema*> field_pointers;
  ~schema_memory() { release_fields(fields); }
};

template <class Struct, class Memory>
void release(Struct* it) {
  delete static_cast<Memory*>(it->private_data);
  it->release = nullptr;
}

/// Moves the fields of a struct into its memory.
template <class Struct, class Memory>
void set_fields(Struct& to, Memory& memory, std::vector<arrow_owner<Struct>>& fields) {
  memory.fields.reserve(fields.size());
  for (auto& field : fields) {
    memory.fields.push_back(*field.get());
    field.get()->release = nullptr;
  }
  for (Struct& field : memory.fields) memory.field_pointers.push_back(&field);
  to.n_children = static_cast<std::int64_t>(fields.size());
  to.children = memory.field_pointers.data();
}

}  // namespace

arrow_owner<ArrowArray> make_array(std::size_t rows, std::size_t nulls, std::vector<result_buffer> buffers,
                                   std::vector<arrow_owner<ArrowArray>> fields) {
  auto memory = std::make_unique<array_memory>();
  for (const result_buffer& buffer : buffers) memory->pointers.push_back(buffer.data);
  memory->buffers = std::move(buffers);
  ArrowArray result{};
  set_fields(result, *memory, fields);
  result.length = static_cast<std::int64_t>(rows);
  result.null_count = static_cast<std::int64_t>(nulls);
  result.n_buffers = static_cast<std::int64_t>(memory->pointers.size());
  result.buffers = memory->pointers.data();
  result.release = &release<ArrowArray, array_memory>;
  result.private_data = memory.release();
  return arrow_owner<ArrowArray>(result);
}

arrow_owner<ArrowSchema> make_schema(const std::string& format, const char* name,
                                     std::vector<arrow_owner<ArrowSchema>> fields) {
  auto memory = std::make_unique<schema_memory>();
  memory->format = format;
  memory->name = name == nullptr ? "" : name;
  ArrowSchema result{};
  set_fields(result, *memory, fields);
  result.format = memory->format.c_str();
  result.name = memory->name.c_str();
  result.flags = ARROW_FLAG_NULLABLE;
  result.release = &release<ArrowSchema, schema_memory>;
  result.private_data = memory.release();
  return arrow_owner<ArrowSchema>(result);
}

}  // namespace roost::c
