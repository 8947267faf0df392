#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <roost/shards/sharded_file.hpp>
#include <set>

#include "support/shards.hpp"

// Sharded tables in folders: what comes back on other shards, and folders that are damaged.

namespace test {
namespace {

namespace fs = std::filesystem;
using map_type = roost::sharded_map<u32, u32, shards_type>;
using set_type = roost::sharded_set<u32, shards_type>;

class sharded_file : public testing::Test {
 protected:
  sharded_file() {
    std::string name = (fs::temp_directory_path() / "roost_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for temporary files");
    folder_ = name;
  }
  ~sharded_file() override { fs::remove_all(folder_); }

  static map_type made(std::size_t shards, const std::vector<u32>& keys) {
    return {test_shards(shards),
            upload(test_shards(shards), split(keys, shards)),
            upload(test_shards(shards), split(numbered_values<u32>(keys.size()), shards)),
            {.load_factor = 0.6}};
  }
  static void expect_pairs(const map_type& map, std::size_t count, const std::vector<u32>& keys) {
    const auto& shards = test_shards(count);
    EXPECT_EQ(map.size(), keys.size());
    EXPECT_TRUE(map.valid(shards));
    const auto queries = upload(shards, split(keys, count));
    auto results = filled_like<u32>(shards, queries, 0);
    map.find(shards, queries, results, 0);
    EXPECT_TRUE(flat(shards, results) == flat(split(numbered_values<u32>(keys.size()), count)));
  }
  std::vector<fs::path> files() const { return {fs::directory_iterator(folder_), fs::directory_iterator()}; }

  fs::path folder_;
};

TEST_F(sharded_file, comes_back_on_other_shards) {
  const auto keys = from_numbers<u32>(multiples(3000, 7));
  const map_type map = made(3, keys);
  roost::save(test_shards(3), map, folder_ / "new" / "one");
  for (const std::size_t shards : {1, 2, 3, 5}) {
    const auto loaded = roost::load_sharded_map<u32, u32>(test_shards(shards), folder_ / "new" / "one");
    expect_pairs(loaded, shards, keys);
    EXPECT_EQ(loaded.build_options().load_factor, 0.6);
  }
  const auto& shards = test_shards(2);
  const auto there = upload(shards, split(keys, 2));
  roost::save(shards, set_type(shards, there), folder_ / "set");
  EXPECT_EQ(roost::load_sharded_set<u32>(test_shards(3), folder_ / "set").size(), keys.size());
  roost::save(shards, map_type(), folder_ / "none");
  EXPECT_TRUE((roost::load_sharded_map<u32, u32>(shards, folder_ / "none").empty()));
}

TEST_F(sharded_file, of_roost_0_2_0_is_read) {
  const auto keys = from_numbers<u32>(multiples(100, 7));
  const fs::path there = fs::path(ROOST_TEST_FILES) / "0.2.0" / "sharded";
  if (std::getenv("ROOST_WRITE_TEST_FILES") != nullptr) roost::save(test_shards(2), made(2, keys), there);
  for (const std::size_t shards : {1, 2, 3}) {
    const auto map = roost::load_sharded_map<u32, u32>(test_shards(shards), there);
    expect_pairs(map, shards, keys);
    EXPECT_EQ(map.build_options().load_factor, 0.6);
  }
}

TEST_F(sharded_file, replaces_the_table_that_was_there) {
  const auto keys = from_numbers<u32>(multiples(100, 7)), others = from_numbers<u32>(multiples(50, 3));
  roost::save(test_shards(3), made(3, keys), folder_);
  roost::save(test_shards(2), made(2, others), folder_);
  EXPECT_EQ(files().size(), 3u) << "two shards and the manifest";
  expect_pairs(roost::load_sharded_map<u32, u32>(test_shards(1), folder_), 1, others);
}

TEST_F(sharded_file, that_is_damaged_is_refused) {
  const auto load = [&] { static_cast<void>(roost::load_sharded_map<u32, u32>(test_shards(2), folder_)); };
  expect_error<roost::file_error>(load, {"manifest.roost", "cannot be read"});
  const auto keys = from_numbers<u32>(multiples(100, 7));
  roost::save(test_shards(3), made(3, keys), folder_);
  expect_error<roost::file_error>(
      [&] { static_cast<void>(roost::load_sharded_map<u32, u64>(test_shards(2), folder_)); },
      {"keys of 4 and values of 4 bytes; expected 4 and 8"});
  for (const auto& file : files()) {
    std::ifstream in(file, std::ios::binary);
    const std::string good(std::istreambuf_iterator<char>(in), {});
    const auto write = [&](const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; };
    std::string bad = good;
    bad[60] = static_cast<char>(bad[60] ^ 1);
    write(bad);
    expect_error<roost::file_error>(load, {file.string(), "damaged"});
    write(good.substr(0, good.size() - 1));
    expect_error<roost::file_error>(load, {file.string(), "cut off"});
    fs::remove(file);
    expect_error<roost::file_error>(load, {file.string(), "cannot be read"});
    write(good);
  }
  EXPECT_NO_THROW(load());
  roost::save(test_shards(3), made(3, keys), folder_ / "other");
  std::vector<fs::path> mine, others;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().starts_with("shard-0")) mine.push_back(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(folder_ / "other")) {
    if (entry.path().filename().string().starts_with("shard-0")) others.push_back(entry.path());
  }
  fs::copy_file(others.at(0), mine.at(0), fs::copy_options::overwrite_existing);
  expect_error<roost::file_error>(load, {mine.at(0).string(), "another table than the manifest"});
}

/// Writes a file with right checksums.
void write_checked(const fs::path& file, const std::string& bytes) {
  roost::file_writer to(file);
  to.write(bytes.data(), bytes.size());
  to.finish();
}
std::string read_checked(const fs::path& file) {
  roost::file_reader from(file, roost::detail::sharded_head::mark);
  std::string result(from.size(), '\0');
  from.read(result.data(), result.size());
  return result;
}

TEST_F(sharded_file, whose_manifest_makes_no_sense_is_refused) {
  using head = roost::detail::sharded_head;
  const auto keys = from_numbers<u32>(multiples(100, 7));
  roost::save(test_shards(3), made(3, keys), folder_);
  const fs::path manifest = folder_ / "manifest.roost";
  const std::string good = read_checked(manifest);
  const auto load = [&] { static_cast<void>(roost::load_sharded_map<u32, u32>(test_shards(2), folder_)); };
  const auto with = [&](const fs::path& file, std::size_t at, const auto& value, std::string_view why) {
    const std::string before = read_checked(file);
    std::string bytes = before;
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    write_checked(file, bytes);
    SCOPED_TRACE(std::to_string(at));
    expect_error<roost::file_error>(load, {file.string(), why});
    write_checked(file, before);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {infinity, -infinity, std::nan(""), 0.0, -0.5, 4.5, 1e300})
    with(manifest, offsetof(head, load_factor), bad, "no manifest");
  for (const u32 bad : {0u, 65u, ~0u}) {
    std::string bytes = good;
    std::memcpy(bytes.data() + offsetof(head, shards), &bad, 4);
    std::memcpy(bytes.data() + offsetof(head, shard), &bad, 4);
    write_checked(manifest, bytes);
    expect_error<roost::file_error>(load, {manifest.string(), "no manifest"});
  }
  write_checked(manifest, good);
  with(manifest, offsetof(head, shards), 2u, "no manifest");
  with(manifest, offsetof(head, shard), 2u, "no manifest");
  for (const u64 bad : {u64{0}, u64{99}, u64{101}, ~u64{0}})
    with(manifest, offsetof(head, pairs), bad, "the files beside it have 100");
  for (const u32 bad : {0u, 2u, ~0u}) with(manifest, offsetof(head, version), bad, "version");
  with(manifest, offsetof(head, byte_order), 0x04030201u, "order of bytes");
  for (const u32 bad : {0u, 8u, ~0u}) {
    with(manifest, offsetof(head, key_bytes), bad, "expected 4 and 4");
    with(manifest, offsetof(head, value_bytes), bad, "expected 4 and 4");
  }
  write_checked(manifest, good + "and more");
  expect_error<roost::file_error>(load, {manifest.string(), "no manifest"});
  write_checked(manifest, good);
  EXPECT_NO_THROW(load());

  std::vector<fs::path> shards;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path() != manifest) shards.push_back(entry.path());
  }
  std::sort(shards.begin(), shards.end());
  ASSERT_EQ(shards.size(), 3u);
  for (const fs::path& shard : shards) {
    for (const u64 bad : {u64{1}, u64{1000}, ~u64{0}, u64{1} << 61})
      with(shard, offsetof(head, pairs), bad, "another size");
    for (const u32 bad : {3u, ~0u}) with(shard, offsetof(head, shard), bad, "another table");
    const std::string mine = read_checked(shard);
    fs::remove(shard);
    expect_error<roost::file_error>(load, {shard.string(), "cannot be read"});
    write_checked(shard, read_checked(shards[shard == shards[0] ? 2 : 0]));
    expect_error<roost::file_error>(load, {shard.string(), "another table"});
    write_checked(shard, mine);
  }
  // The keys of one shard twice: there are fewer than all files say.
  std::string twice = read_checked(shards[0]);
  const u32 other = 2;
  std::memcpy(twice.data() + offsetof(head, shard), &other, 4);
  write_checked(shards[2], twice);
  expect_error<roost::file_error>(load, {manifest.string(), "says that there are 100 pairs"});
}

/// Lets no file of this process be longer.
class file_limit {
 public:
  explicit file_limit(std::size_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    struct rlimit little = old_;
    little.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &little);
  }
  file_limit(const file_limit&) = delete;
  ~file_limit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, handler_);
  }

 private:
  struct rlimit old_;
  void (*handler_)(int);
};

TEST_F(sharded_file, that_cannot_be_written_leaves_what_was_there) {
  const auto keys = from_numbers<u32>(multiples(100, 7)), many = from_numbers<u32>(multiples(60000, 7));
  const map_type map = made(3, keys), large = made(3, many);
  const auto save = [&](const map_type& which, const fs::path& where) {
    roost::save(test_shards(3), which, where);
  };
  save(map, folder_ / "good");
  const auto names_in = [](const fs::path& where) {
    std::set<std::string> result;
    for (const auto& entry : fs::recursive_directory_iterator(where)) result.insert(entry.path().string());
    return result;
  };
  std::ofstream(folder_ / "file") << "not a folder";
  const auto before = names_in(folder_);
  expect_error<roost::file_error>([&] { save(map, folder_ / "file"); }, {"cannot be"});
  expect_error<roost::file_error>([&] { save(map, folder_ / "file" / "in"); }, {"cannot be made"});
  expect_error<roost::file_error>([&] { save(map, "/proc/self/folder"); }, {"cannot be made"});
  save(large, folder_ / "measured");
  std::size_t longest = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "measured"))
    longest = std::max<std::size_t>(longest, entry.file_size());
  fs::remove_all(folder_ / "measured");
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, longest - 1}) {
    const file_limit little(limit);  // the disk is full: at once, in all shards, in one of them
    expect_error<roost::file_error>([&] { save(large, folder_ / "good"); }, {"cannot be written"});
    EXPECT_EQ(names_in(folder_), before);
    expect_error<roost::file_error>([&] { save(large, folder_ / "new" / "one"); }, {"cannot be written"});
    EXPECT_EQ(names_in(folder_), before) << "and no folder";
  }
  expect_pairs(roost::load_sharded_map<u32, u32>(test_shards(3), folder_ / "good"), 3, keys);

  // The manifest cannot be written: nothing stays of the shards.
  fs::create_directories(folder_ / "bad" / "manifest.roost");
  const auto with_bad = names_in(folder_);
  expect_error<roost::file_error>([&] { save(map, folder_ / "bad"); },
                                  {"manifest.roost", "not a regular file"});
  EXPECT_EQ(names_in(folder_), with_bad);
}

TEST_F(sharded_file, clears_what_a_killed_process_has_left) {
  const auto keys = from_numbers<u32>(multiples(100, 7));
  const map_type map = made(2, keys);
  const auto save = [&] { roost::save(test_shards(2), map, folder_); };
  save();
  const auto leave = [&](const char* name) { std::ofstream(folder_ / name) << "left"; };
  const std::vector<const char*> left = {"shard-0-of-2-0123456789abcdef.roost",
                                         "shard-1-of-2-0123456789abcdef.roost.partial",
                                         "shard-63-of-64-0000000000000000.roost", "manifest.roost.partial"};
  const std::vector<const char*> not_ours = {"shard-0-of-2-0123456789abcdef.roost.old", "shard-0-of-2.roost",
                                             "shard-00-of-2-0123456789abcdef.roost", "notes"};
  for (const auto* const name : not_ours) leave(name);
  for (const auto* const name : left) leave(name);
  save();
  for (const auto* const name : left) EXPECT_FALSE(fs::exists(folder_ / name)) << name;
  for (const auto* const name : not_ours) EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  EXPECT_EQ(files().size(), 3 + not_ours.size());

  for (const auto* const name : left) leave(name);
  {
    const roost::detail::descriptor other(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(flock(other.get(), LOCK_SH), 0);  // who else is saving may have made them
    save();
    for (const auto* const name : left)
      EXPECT_EQ(fs::exists(folder_ / name), std::string_view(name) != "manifest.roost.partial") << name;
  }
  {
    const file_limit little(1);
    EXPECT_THROW(save(), roost::file_error);
    for (const auto* const name : left)
      EXPECT_FALSE(fs::exists(folder_ / name)) << name << " before it writes";
  }
  expect_pairs(roost::load_sharded_map<u32, u32>(test_shards(2), folder_), 2, keys);
}

TEST_F(sharded_file, is_saved_to_by_several_at_once) {
  constexpr int savers = 4;
  [[maybe_unused]] const auto& same = test_shards(1);
  std::vector<std::future<void>> all;
  for (int i = 0; i < savers; ++i) {
    all.push_back(std::async(std::launch::async, [&, i] {
#if defined(__CUDACC__)
      const auto& shards = same;
#else
      const shards_type shards(1 + i % 2);
#endif
      const auto keys = from_numbers<u32>(multiples(100 + static_cast<u64>(i), 7));
      const auto there = upload(shards, split(keys, shards.size()));
      const map_type map(shards, there, there);
      for (int turn = 0; turn < 5; ++turn) {
        try {
          roost::save(shards, map, folder_);
        } catch (const roost::file_error& error) {  // the manifest is written by one at a time
          EXPECT_NE(std::string(error.what()).find("somebody else is saving"), std::string::npos)
              << error.what();
        }
        if (fs::exists(folder_ / "manifest.roost")) {
          try {
            EXPECT_GE((roost::load_sharded_map<u32, u32>(shards, folder_).size()), 100u);
          } catch (const roost::file_error& error) {  // replaced meanwhile
            EXPECT_NE(std::string(error.what()).find("cannot be read"), std::string::npos) << error.what();
          }
        }
      }
    }));
  }
  for (auto& one : all) one.get();
  EXPECT_GE((roost::load_sharded_map<u32, u32>(test_shards(2), folder_).size()), 100u);
  const auto keys = from_numbers<u32>(multiples(100, 7));
  roost::save(test_shards(3), made(3, keys), folder_);
  EXPECT_EQ(files().size(), 4u);
}

}  // namespace
}  // namespace test
