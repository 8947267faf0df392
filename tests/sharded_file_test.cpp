#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <roost/sharded_file.hpp>

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
      {"keys of 4 and values of 4 bytes, asked for are 4 and 8"});
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

TEST_F(sharded_file, that_cannot_be_written_leaves_what_was_there) {
  const auto keys = from_numbers<u32>(multiples(100, 7));
  roost::save(test_shards(2), made(2, keys), folder_);
  std::ofstream(folder_ / "file") << "not a folder";
  expect_error<roost::file_error>([&] { roost::save(test_shards(2), made(2, keys), folder_ / "file"); },
                                  {"cannot be"});
  EXPECT_EQ(files().size(), 4u);
  expect_pairs(roost::load_sharded_map<u32, u32>(test_shards(3), folder_), 3, keys);
}

}  // namespace
}  // namespace test
