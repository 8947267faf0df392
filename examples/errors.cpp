// What goes wrong is thrown, with one line that says what to do, and leaves the table
// as it was.
#include <cstdint>
#include <cstdio>
#include <memory_resource>
#include <roost/roost.hpp>
#include <vector>

/// Memory that ends: what a small machine does to a big build.
class limited_memory : public std::pmr::memory_resource {
 public:
  std::size_t left = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > left) throw std::bad_alloc();
    left -= bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    left += bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

int main() {
  const auto number = [](std::size_t i) { return static_cast<std::uint32_t>(i); };
  const roost::computed few(1000, number), many(1000000, number);
  int caught = 0;

  limited_memory memory;
  memory.left = 1 << 20;
  roost::host cpu(1, &memory);
  roost::frozen_map map(cpu, few, few);
  try {
    map.rebuild(cpu, many, many);
  } catch (const roost::out_of_memory& e) {
    std::printf("%s\n", e.what());  // the map still holds the thousand
    ++caught;
  }
  try {
    map.rebuild(cpu, few, many);
  } catch (const roost::invalid_argument& e) {
    std::printf("%s\n", e.what());
    ++caught;
  }
  try {
    roost::frozen_map overfull(cpu, few, few, {.load_factor = 5});
  } catch (const roost::error& e) {  // the base of all
    std::printf("%s\n", e.what());
    ++caught;
  }

  const bool right =
      caught == 3 && map.valid(cpu) && map.count_found(cpu, many) == 1000;
  std::puts(right ? "errors: right" : "errors: wrong answers");
  return right ? 0 : 1;
}
