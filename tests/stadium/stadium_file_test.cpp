#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <roost/stadium/stadium_file.hpp>
#include <thread>

#include "support/stadium.hpp"

// Maps in files: what comes back, and what becomes of files that are damaged, full, or never finished.

extern char** environ;

namespace test {
namespace {

namespace fs = std::filesystem;

/// A folder of one's own, gone at the end.
class folder {
 public:
  folder() {
    std::string name = (fs::temp_directory_path() / "roost_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for temporary files");
    path_ = name;
  }
  folder(const folder&) = delete;
  ~folder() { fs::remove_all(path_); }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::vector<char> bytes_of(const fs::path& file) {
  std::vector<char> bytes(fs::file_size(file));
  std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}
void write_bytes(const fs::path& file, const std::vector<char>& bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class Map, class Place>
Map made(const Place& place, const std::vector<typename Map::key_type>& keys,
         const std::vector<typename Map::mapped_type>& values, roost::stadium_options options = {}) {
  Map map(place, keys.size(), options);
  map.insert(place, roost::copy_to(place, keys), roost::copy_to(place, values));
  return map;
}

/// Every key has its value, and there are no others.
template <class Map, class Place>
void expect_pairs(const Place& place, const Map& map, const std::vector<typename Map::key_type>& keys,
                  const std::vector<typename Map::mapped_type>& values) {
  EXPECT_TRUE(map.valid(place));
  ASSERT_EQ(map.size(place), keys.size());
  roost::array<typename Map::mapped_type, Place> found(place, keys.size());
  map.find(place, roost::copy_to(place, keys), found, from_number<typename Map::mapped_type>(77));
  EXPECT_TRUE(roost::copy_to_host(place, found) == values);
}

template <class T>
class stadium_file : public testing::Test {};
using all_types = axis<stadium_types<u32, u32>, stadium_types<u64, u64>, stadium_types<linked<u64, 8>, u32>,
                       stadium_types<packed<5>, linked<u32, 64>>>;
TYPED_TEST_SUITE(stadium_file, all_types);

TYPED_TEST(stadium_file, brings_a_map_back_on_either_place) {
  using key = typename TypeParam::key;
  using value = typename TypeParam::value;
  using map_type = roost::stadium_map<key, value, place_type>;
  using host_map = roost::stadium_map<key, value, roost::host>;
  const folder here;
  const roost::host cpu(2);
  for (auto options : kinds_of_stadium()) {
    SCOPED_TRACE(text_of(options));
    const auto keys = from_numbers<key>(different_numbers(3000, 1));
    const auto values = numbered_values<value>(keys.size());
    map_type map = made<map_type>(test_place(), keys, values, options);
    const std::vector<key> gone(keys.begin(), keys.begin() + 500), left(keys.begin() + 500, keys.end());
    const std::vector<value> values_left(values.begin() + 500, values.end());
    map.erase(test_place(), upload(gone));
    roost::save(test_place(), map, here / "map");
    EXPECT_FALSE(fs::exists(here / "map.partial"));

    auto back =
        roost::load_stadium_map<key, value>(test_place(), here / "map", options.bodies, options.budget);
    expect_pairs(test_place(), back, left, values_left);
    EXPECT_EQ(back.capacity(), map.capacity());
    EXPECT_EQ(back.statistics(test_place()).erased, map.statistics(test_place()).erased);
    back.insert(test_place(), upload(gone), upload(std::vector<value>(values.begin(), values.begin() + 500)));
    expect_pairs(test_place(), back, keys, values);

    auto on_host = roost::load_stadium_map<key, value>(cpu, here / "map");
    expect_pairs(cpu, on_host, left, values_left);
    roost::save(cpu, on_host, here / "again");
    EXPECT_TRUE(bytes_of(here / "again") == bytes_of(here / "map"));
    roost::save(cpu, made<host_map>(cpu, keys, values), here / "map");  // over the one that is there
    expect_pairs(test_place(), roost::load_stadium_map<key, value>(test_place(), here / "map"), keys, values);
  }
}

using small_map = roost::stadium_map<u32, u64, place_type>;

small_map small(u64 seed, std::size_t n = 20000) {
  return made<small_map>(test_place(), from_numbers<u32>(different_numbers(n, seed)),
                         from_numbers<u64>(random_numbers(n, seed)));
}
small_map load(const fs::path& file) { return roost::load_stadium_map<u32, u64>(test_place(), file); }

void expect_refused(const fs::path& file, const std::string& why) {
  try {
    load(file);
    ADD_FAILURE() << "nothing thrown";
  } catch (const roost::file_error& error) {
    EXPECT_EQ(std::string(error.what()).find(file.string()), 0u) << error.what();
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(stadium_files, are_maps_that_know_how_many_keys_they_have) {
  const std::size_t n = 20000;
  const auto keys = from_numbers<u64>(different_numbers(2 * n, 1));
  const auto part = [&](std::size_t first, std::size_t count) {
    return std::vector<u64>(keys.begin() + first, keys.begin() + first + count);
  };
  const folder here;
  const roost::stadium_options options{.bodies = residence::host, .region_slots = 1000};
  roost::save(test_place(),
              made<roost::stadium_map<u64, u64, place_type>>(test_place(), part(0, n), part(0, n), options),
              here / "map");
  const auto load = [&] {
    return roost::load_stadium_map<u64, u64>(test_place(), here / "map", residence::host);
  };
  {
    auto map = load();  // what is streamed into it must not be taken for all there is
    const auto more = upload(part(n, map.capacity() * 4 / 5 - n));
    EXPECT_EQ(map.insert(test_place(), more, more, {.path = roost::path::streamed}).inserted, more.size());
    expect_pairs(test_place(), map, part(0, n + more.size()), part(0, n + more.size()));
  }
  {
    auto map = load();
    EXPECT_EQ(map.erase(test_place(), upload(part(0, 1000))), 1000u);
    const auto again = upload(part(0, 500));
    EXPECT_EQ(map.insert_new(test_place(), again, again).rehashes, 0u);
    EXPECT_EQ(map.size(test_place()), n - 500);
  }
  {
    auto map = load();
    const auto all = upload(part(0, 2 * n));
    const auto report = map.insert(test_place(), all, all);
    EXPECT_EQ(report.inserted, n);
    EXPECT_EQ(report.full, 0u);
    EXPECT_EQ(report.rehashes, 1u);
    expect_pairs(test_place(), map, keys, keys);
  }
}

TEST(stadium_files, of_no_keys_come_back) {
  const folder here;
  roost::save(test_place(), small_map(test_place()), here / "empty");
  EXPECT_EQ(load(here / "empty").size(test_place()), 0u);
}

#if !defined(__CUDACC__)
/// test_memory() is full of 0xa5 before anybody writes to it.
TEST(stadium_files, tell_nothing_of_memory_that_nobody_has_written_to) {
  const folder here;
  const auto keys = from_numbers<u64>(multiples(100, 3));
  const auto values = from_numbers<u64>(multiples(100, 5));
  roost::save(test_place(),
              made<roost::stadium_map<u64, u64, place_type>>(test_place(), keys, values,
                                                             {.bodies = residence::place}),
              here / "map");
  const auto bytes = bytes_of(here / "map");
  const std::vector<char> untouched(8, '\xa5');
  EXPECT_EQ(std::search(bytes.begin(), bytes.end(), untouched.begin(), untouched.end()), bytes.end());
}
#endif

TEST(stadium_files, that_are_damaged_are_refused) {
  const folder here;
  const fs::path file = here / "map";
  roost::save(test_place(), small(1, 3000), file);
  const auto good = bytes_of(file);
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    auto bad = good;
    const std::size_t at = i < 64    ? static_cast<std::size_t>(i)
                           : i < 128 ? good.size() - 1 - static_cast<std::size_t>(i - 64)
                                     : random() % good.size();
    bad[at] = static_cast<char>(bad[at] ^ 1 << random() % 8);
    write_bytes(file, bad);
    EXPECT_THROW(load(file), roost::file_error) << "byte " << at;
  }
  for (std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{20}, good.size() / 2,
                             good.size() - 33, good.size() - 32, good.size() - 1}) {
    write_bytes(file, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)});
    expect_refused(file, length < 20 ? "is not a saved table" : "cut off");
  }
  auto longer = good;
  longer.push_back(0);
  write_bytes(file, longer);
  expect_refused(file, "cut off");
  write_bytes(file, good);
  EXPECT_EQ(load(file).size(test_place()), 3000u);
}

TEST(stadium_files, that_are_something_else_are_refused) {
  const folder here;
  expect_refused(here / "missing", "cannot be read: No such file");
  expect_error<roost::file_error>([&] { load(here / "two\nlines"); }, {"two?lines: cannot be read"});
  fs::create_directory(here / "folder");
  expect_refused(here / "folder", "is not a regular file");
  write_bytes(here / "text", std::vector<char>(100000, 'x'));
  expect_refused(here / "text", "is not a saved table of this kind");
  const auto keys = from_numbers<u64>(different_numbers(100, 1));
  roost::save(test_place(), made<roost::stadium_map<u64, u64, place_type>>(test_place(), keys, keys),
              here / "other");
  expect_refused(here / "other", "has keys of 8 and values of 8 bytes; expected 4 and 8");
  for (const char* const device : {"/dev/zero", "/dev/null", "/dev/full"}) {
    expect_refused(device, "is not a regular file");
    EXPECT_THROW(roost::save(test_place(), small(1), device), roost::file_error);
    EXPECT_FALSE(fs::exists(std::string(device) + ".partial"));
  }
  expect_refused("/proc/self/status", "is not a saved table");
  EXPECT_THROW(roost::save(test_place(), small(1), here / "folder"), roost::file_error);
  EXPECT_FALSE(fs::exists(here / "folder.partial"));
  write_bytes(here / "precious", std::vector<char>(10, 'x'));
  fs::create_symlink(here / "precious", here / "new.partial");
  EXPECT_THROW(roost::save(test_place(), small(1), here / "new"), roost::file_error);
  EXPECT_EQ(fs::file_size(here / "precious"), 10u);
  EXPECT_THROW(roost::save(test_place(), small(1), fs::path(here / "no") / "folder"), roost::file_error);
}

// A pipe that is opened to be read waits for a writer.
TEST(stadium_files, that_are_pipes_are_refused_at_once) {
  const folder here;
  const fs::path file = here / "pipe";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  auto refused = std::async(std::launch::async, [&] { expect_refused(file, "is not a regular file"); });
  const bool soon = refused.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  EXPECT_TRUE(soon) << "waits for a writer";
  if (!soon) std::ofstream(file).put('x');  // which ends the wait
}

/// Writes bytes with right checksums.
void write_checked(const fs::path& file, const std::vector<char>& bytes) {
  roost::file_writer to(file);
  to.write(bytes.data(), bytes.size());
  to.finish();
}
template <class T>
void overwrite(std::vector<char>& bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

using small_file = roost::detail::stadium_file<u32, u64, place_type>;
using file_header = small_file::header;

/// A map's file without its checksums.
std::vector<char> contents(const small_map& map, const fs::path& file, std::string_view types = {}) {
  roost::save(test_place(), map, file, types);
  roost::file_reader from(file, small_file::mark);
  std::vector<char> result(from.size());
  from.read(result.data(), result.size());
  return result;
}

/// Memory that calls a function once, when the map's is taken: in the middle of a load.
class interrupting_memory : public watched_memory {
 public:
  std::function<void()> once;

 private:
  void meanwhile() {
    if (const auto f = std::exchange(once, nullptr)) f();
  }
#if defined(__CUDACC__)
 public:
  void* allocate(std::size_t bytes, cudaStream_t stream) override {
    meanwhile();
    return watched_memory::allocate(bytes, stream);
  }
#else
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    meanwhile();
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
#endif
};

TEST(stadium_files, that_change_while_they_are_loaded) {
  using value = packed<512>;
  using map_type = roost::stadium_map<u32, value, place_type>;
  const folder here;
  const fs::path file = here / "map", copy = here / "copy", other = here / "other";
  const auto keys = from_numbers<u32>(different_numbers(56000, 1));
  const auto values = numbered_values<value>(keys.size());
  roost::save(test_place(), made<map_type>(test_place(), keys, values), file);
  roost::save(test_place(), made<map_type>(test_place(), {keys[0]}, {values[0]}), other);
  fs::copy_file(file, copy);
  const std::size_t size = fs::file_size(file), block = roost::detail::file_end::block;
  ASSERT_GT(size, 2 * block) << "more than what is read at once";
  roost::detail::file_end end;
  const auto good = bytes_of(file);
  std::memcpy(&end, good.data() + size - sizeof(end), sizeof(end));

  interrupting_memory memory;
  const place_type place = make_place(memory);
  for (const auto bodies : {residence::place, residence::host}) {
    const auto load_while = [&](const std::function<void()>& what) {
      fs::copy_file(copy, file, fs::copy_options::overwrite_existing);
      memory.once = what;
      return roost::load_stadium_map<u32, value>(place, file, bodies);
    };
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1, 2 * block,
                                     2 * block + 1, static_cast<std::size_t>(end.bytes) - 1}) {
      expect_error<roost::file_error>([&] { load_while([&] { fs::resize_file(file, length); }); },
                                      {file.string(), "was cut off while it was read"});
    }
    expect_error<roost::file_error>(
        [&] {
          load_while([&] {
            std::fstream to(file, std::ios::binary | std::ios::in | std::ios::out);
            to.seekp(static_cast<std::streamoff>(2 * block + 5)).put('x').put('y');
          });
        },
        {"is damaged between bytes " + std::to_string(2 * block)});
    const auto expect_whole = [&](const std::function<void()>& what) {
      const auto map = load_while(what);
      expect_pairs(place, map, keys, values);
    };
    expect_whole([&] { fs::resize_file(file, end.bytes); });  // what is checked with has been read
    expect_whole([&] { fs::resize_file(file, size + 4096); });
    expect_whole([&] { fs::remove(file); });
    expect_whole([&] {
      fs::copy_file(other, here / "new");
      fs::rename(here / "new", file);
    });
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TEST(stadium_files, keep_a_text_that_names_the_types) {
  const folder here;
  const small_map map = small(1);
  roost::save(test_place(), map, here / "plain");
  roost::save(test_place(), map, here / "named", "keys of u32");
  const auto load_as = [&](const char* name, std::string types) {
    auto back = roost::load_stadium_map<u32, u64>(test_place(), here / name, residence::automatic,
                                                  ~std::size_t{0}, &types);
    EXPECT_EQ(back.size(test_place()), map.size(test_place()));
    return types;
  };
  EXPECT_EQ(load_as("named", "keys of u32"), "keys of u32");
  EXPECT_EQ(load_as("named", ""), "keys of u32");
  EXPECT_EQ(load_as("plain", "keys of u32"), "");
  expect_error<roost::file_error>([&] { load_as("named", "keys of i32"); },
                                  {(here / "named").string(), "has keys of u32; expected keys of i32"});
  EXPECT_EQ(load(here / "named").size(test_place()), 20000u);
  EXPECT_EQ(bytes_of(here / "named").size(), bytes_of(here / "plain").size() + 8 + 11);

  const fs::path file = here / "damaged";
  const auto good = contents(map, file, "keys of u32");
  for (const u64 bytes : {u64{0}, u64{12}, u64{1} << 40, ~u64{0}, ~u64{0} - 8}) {
    auto changed = good;
    std::memcpy(changed.data() + sizeof(file_header), &bytes, sizeof(bytes));
    write_checked(file, changed);
    expect_refused(file, "is no stadium_map: ");
  }
}

TEST(stadium_files, of_roost_0_2_0_are_read) {
  const auto keys = from_numbers<u32>(multiples(300, 7));
  const auto values = from_numbers<u64>(multiples(300, u64{1} << 40, 5));
  const fs::path file = fs::path(ROOST_TEST_FILES) / "0.2.0" / "map.stadium";
  if (std::getenv("ROOST_WRITE_TEST_FILES") != nullptr) {
    const roost::host cpu(1);
    roost::save(cpu, made<roost::stadium_map<u32, u64, roost::host>>(cpu, keys, values), file, "u32 to u64");
  }
  std::string types;
  const auto map = roost::load_stadium_map<u32, u64>(test_place(), file, roost::residence::automatic,
                                                     ~std::size_t{0}, &types);
  EXPECT_EQ(types, "u32 to u64");
  expect_pairs(test_place(), map, keys, values);
}

TEST(stadium_files, of_heads_that_make_no_sense_are_refused) {
  struct number {
    std::size_t at, bytes;
    std::vector<u64> bad;
    std::vector<u64> good = {};
  };
  const auto bits = [](double x) { return std::bit_cast<u64>(x); };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr u64 most = ~u32{0}, half = u64{1} << 31;
#define NUMBER(name) offsetof(file_header, name), sizeof(file_header::name)
  const std::vector<number> numbers = {
      {NUMBER(version), {0, 2, 3, most}},
      {NUMBER(byte_order), {0, 1, 0x04030201, most}},
      {NUMBER(key_bytes), {0, 1, 8, most}},
      {NUMBER(value_bytes), {0, 4, half, most}},
      {NUMBER(item_bytes), {0, 1, 8, half, most}},
      {NUMBER(ticket_bits), {0, 1, 2, 3, 4, 5, 7, 9, 16, half, most}},  // 8: the others have more words
      {NUMBER(grows), {2, 255, half, most}, {0, 1}},
      {NUMBER(option_region_slots), {}, {0, 1, 2, half, most}},
      {NUMBER(regions), {0, 2, half - 1, half, most}},
      {NUMBER(region_slots), {0, 1, 2, 3, 4, half - 1, half, most}},
      {NUMBER(region_words), {0, 1, half, most}},
      {NUMBER(guards), {0, 3, 65, 1 << 21, half, most}, {1, 64, 1 << 20}},
      {NUMBER(seed), {}, {0, 1, ~u64{0}}},
      {NUMBER(load_factor),
       {bits(0), bits(-0.0), bits(-0.5), bits(1.0000001), bits(infinity), bits(-infinity), bits(std::nan("")),
        ~u64{0}},
       {bits(1), bits(1e-300), 1}},
  };
#undef NUMBER
  const folder here;
  const fs::path file = here / "map";
  const auto good = contents(small(1, 100), file);
  std::size_t bytes = sizeof(file_header::mark);
  for (const auto& [at, size, bad_ones, good_ones] : numbers) {
    EXPECT_EQ(at, bytes) << "a number of the head is left out";
    bytes += size;
    const auto write = [&, at = at, size = size](u64 value) {
      auto changed = good;
      std::memcpy(changed.data() + at, &value, size);  // the lower bytes come first
      write_checked(file, changed);
    };
    for (const u64 bad : bad_ones) {
      SCOPED_TRACE(std::to_string(bad) + " at " + std::to_string(at));
      write(bad);
      expect_refused(file, "");
    }
    for (const u64 value : good_ones) {
      SCOPED_TRACE(std::to_string(value) + " at " + std::to_string(at));
      write(value);
      EXPECT_EQ(load(file).size(test_place()), 100u);
    }
  }
  EXPECT_EQ(bytes, sizeof(file_header));

  auto shorter = good;
  shorter.resize(sizeof(file_header) - 1);
  write_checked(file, shorter);
  expect_refused(file, "too short");
}

TEST(stadium_files, whose_sizes_overflow_are_refused) {
  const folder here;
  const fs::path file = here / "map";
  auto bytes = contents(small(1, 100), file);
  constexpr u32 regions = 501085936, region_slots = 2147456141, region_words = (region_slots + 6) / 7;
  const u64 sum = sizeof(file_header) + u64{regions} * (sizeof(roost::ticket_board::region_head) +
                                                        8 * u64{region_words} + 16 * u64{region_slots});
  ASSERT_LT(sum, 1u << 20) << "2^64 and a little more";
  bytes.resize(sum);
  overwrite(bytes, offsetof(file_header, regions), regions);
  overwrite(bytes, offsetof(file_header, region_slots), region_slots);
  overwrite(bytes, offsetof(file_header, region_words), region_words);
  write_checked(file, bytes);
  expect_refused(file, "other sizes than its head says");
}

TEST(stadium_files, whose_regions_or_tickets_make_no_sense_are_refused) {
  using head = roost::ticket_board::region_head;
  const folder here;
  const fs::path file = here / "map";
  const auto keys = from_numbers<u32>(different_numbers(100, 1));
  const auto map =
      made<small_map>(test_place(), keys, from_numbers<u64>(random_numbers(100, 1)), {.region_slots = 7});
  const auto good = contents(map, file);
  file_header first;
  std::memcpy(&first, good.data(), sizeof(first));
  ASSERT_GT(first.regions, 2u);
  const auto heads = [&](u32 region) { return sizeof(first) + region * sizeof(head); };
  const auto with = [&](std::size_t at, auto value, const std::string& why) {
    SCOPED_TRACE(std::to_string(value) + " at " + std::to_string(at));
    auto bytes = good;
    overwrite(bytes, at, value);
    write_checked(file, bytes);
    expect_refused(file, why);
  };
  for (const u32 region : {0u, first.regions - 1}) {
    const std::string why = "region " + std::to_string(region) + " ";
    for (const u32 bad : {4u, ~u32{0}}) with(heads(region) + offsetof(head, flags), bad, why);
    for (const u32 bad : {first.region_slots + 1, ~u32{0}})
      with(heads(region) + offsetof(head, longest), bad, why);
    for (const u32 bad : {first.regions, ~u32{0}}) with(heads(region) + offsetof(head, far), bad, why);
  }
  const std::size_t words_at = heads(first.regions);
  with(words_at, u64{0}, "tickets");   // keys where no slot is
  with(words_at, ~u64{1}, "tickets");  // a slot that somebody still writes to
  write_checked(file, good);
  EXPECT_EQ(load(file).size(test_place()), 100u);
}

TEST(stadium_files, whose_ends_make_no_sense_are_refused) {
  const folder here;
  const fs::path file = here / "map";
  roost::save(test_place(), small(1, 100), file);
  auto bytes = bytes_of(file);
  roost::detail::file_end end;
  const std::size_t at = bytes.size() - sizeof(end);
  std::memcpy(&end, bytes.data() + at, sizeof(end));
  const u64 right = end.bytes;
  for (const u64 bad : {u64{0}, u64{1}, right - 1, right + 1, right + 8, u64{at}, u64{bytes.size()},
                        u64{1} << 63, ~u64{0}, ~u64{0} - sizeof(end)}) {
    end.bytes = bad;
    end.own_checksum = end.checksum_of_this();
    overwrite(bytes, at, end);
    write_bytes(file, bytes);
    expect_refused(file, "is damaged");
  }
}

TEST(stadium_files, stay_as_they_are_when_the_disk_is_full) {
  const folder here;
  const fs::path file = here / "map";
  roost::save(test_place(), small(1, 1000), file);
  const auto before = bytes_of(file);
  const auto larger = small(2);
  struct rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  struct rlimit little = old;
  little.rlim_cur = 100000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  EXPECT_THROW(roost::save(test_place(), larger, file), roost::file_error);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(bytes_of(file) == before);
  EXPECT_FALSE(fs::exists(here / "map.partial"));
  roost::save(test_place(), larger, file);
  EXPECT_EQ(load(file).size(test_place()), 20000u);
}

TEST(stadium_files, keep_the_permissions_that_they_have) {
  const folder here;
  const fs::path file = here / "map", partial = here / "map.partial";
  const auto mode_of = [](const fs::path& of) {
    struct stat facts = {};
    EXPECT_EQ(stat(of.c_str(), &facts), 0);
    return facts.st_mode & 07777u;
  };
  const mode_t before = umask(0027);
  roost::save(test_place(), small(1, 100), file);
  EXPECT_EQ(mode_of(file), 0640u) << "a new file's are those of any new file";
  for (const mode_t mode : {0600u, 0444u, 0666u, 0755u, 0640u}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    roost::save(test_place(), small(1, 100), file);
    EXPECT_EQ(mode_of(file), mode);
  }
  // While it is written, nobody else reads what only the owner may.
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  for (const bool left : {false, true}) {  // by a writer that was killed
    if (left) {
      write_bytes(partial, std::vector<char>(10, 'x'));
      ASSERT_EQ(chmod(partial.c_str(), 0666), 0);
    }
    roost::file_writer to(file);
    EXPECT_EQ(mode_of(partial), 0600u);
    to.write("new", 3);
    to.finish();
    EXPECT_EQ(mode_of(file), 0600u);
  }
  umask(before);
}

/// What the next test starts and kills: saves one map after the other to ROOST_TEST_FILE.
TEST(stadium_files, DISABLED_saved_again_and_again) {
  const char* const file = std::getenv("ROOST_TEST_FILE");
  ASSERT_NE(file, nullptr);
  const auto one = small(1, 10000), other = small(2, 30000);
  for (;;) {
    roost::save(test_place(), one, file);
    roost::save(test_place(), other, file);
  }
}

TEST(stadium_files, are_whole_whenever_their_writer_is_killed) {
  const folder here;
  const fs::path file = here / "map";
  ASSERT_EQ(setenv("ROOST_TEST_FILE", file.c_str(), 1), 0);
  for (const char* const shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})  // which may not be the child's
    ASSERT_EQ(unsetenv(shard), 0);
  std::mt19937_64 random(1);
  const auto exists_soon = [&] {
    for (int i = 0; i < 6000 && !fs::exists(file); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return fs::exists(file);
  };
  int sizes[2] = {};
  for (int round = 0; round < (on_host ? 20 : 5); ++round) {
    char self[] = "/proc/self/exe", filter[] = "--gtest_filter=stadium_files.DISABLED_saved_again_and_again",
         also[] = "--gtest_also_run_disabled_tests", quiet[] = "--gtest_brief=1";
    char* arguments[] = {self, filter, also, quiet, nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, self, nullptr, nullptr, arguments, environ), 0);
    const bool began = exists_soon();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100000));
    EXPECT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(began);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    const std::size_t size = load(file).size(test_place());
    ASSERT_TRUE(size == 10000 || size == 30000) << size;
    ++sizes[size == 30000];
    if (round % 4 == 3) fs::remove(file);
  }
  EXPECT_GT(sizes[0] + sizes[1], 0);
  roost::save(test_place(), small(3, 100), file);  // what was left half written is in nobody's way
  EXPECT_EQ(load(file).size(test_place()), 100u);
  EXPECT_FALSE(fs::exists(here / "map.partial"));
}

}  // namespace
}  // namespace test
