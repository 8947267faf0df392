#pragma once

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "roost/file.hpp"
#include "roost/shards/detail/tables.hpp"

// The folder of a saved sharded table.

namespace roost::detail {

template <class Value>
constexpr std::size_t bytes_of_value = std::is_same_v<Value, none> ? 0 : sizeof(Value);

/// The beginning of the files of a saved table: of the manifest, and of the file of each shard.
struct sharded_head {
  static constexpr std::string_view mark = "roost sharded table\n";

  char its_mark[24] = {};
  std::uint32_t version = 1;
  std::uint32_t byte_order = 0x01020304;
  std::uint32_t key_bytes = 0, value_bytes = 0;
  std::uint32_t shards = 0;
  std::uint32_t shard = 0;  // in the manifest: the number of shards
  std::uint64_t save = 0;   // a number that all files of one save() share
  std::uint64_t pairs = 0;
  std::uint64_t seed = 0;
  double load_factor = 0;

  sharded_head() { std::memcpy(its_mark, mark.data(), mark.size()); }
};

/// The files of a saved table in a folder.
class sharded_files {
  using path = std::filesystem::path;

 public:
  /// `load_factor_most`: of such a table.
  sharded_files(const path& folder, std::size_t key_bytes, std::size_t value_bytes, double load_factor_most)
      : folder_(folder), load_factor_most_(load_factor_most) {
    head_.key_bytes = static_cast<std::uint32_t>(key_bytes);
    head_.value_bytes = static_cast<std::uint32_t>(value_bytes);
  }

  path manifest() const { return folder_ / "manifest.roost"; }
  path file_of(std::uint32_t shard) const { return folder_ / name_of(head_, shard); }

  /// The manifest's head, which says how many shards there are and what the options were.
  const sharded_head& head() const { return head_; }

  /// Reads the manifest.
  void open() {
    file_reader source(manifest(), sharded_head::mark);
    head_ = head_of(source, manifest());
    if (source.size() != sizeof(head_) || head_.shard != head_.shards || head_.shards == 0 ||
        head_.shards > 64 || !(head_.load_factor > 0 && head_.load_factor <= load_factor_most_))
      throw_file_error(manifest(), "is no manifest of a sharded table");
  }

  /// Appends the pairs of a shard's file.
  template <class Key, class Value>
  void read(std::uint32_t shard, vector_of<Key>& keys, vector_of<Value>& values) const {
    const path file = file_of(shard);
    file_reader source(file, sharded_head::mark);
    const sharded_head mine = head_of(source, file);
    if (mine.save != head_.save || mine.shard != shard || mine.shards != head_.shards)
      throw_file_error(file, "belongs to another table than the manifest beside it");
    const std::size_t bytes = source.size() - sizeof(sharded_head), each = mine.key_bytes + mine.value_bytes;
    if (mine.pairs > bytes || mine.pairs * each != bytes)
      throw_file_error(file, "has another size than its head says; save the table again");
    const std::size_t before = keys.size();
    keys.resize(before + mine.pairs);
    source.read(keys.data() + before, mine.pairs * sizeof(Key));
    if constexpr (bytes_of_value<Value> != 0) {
      values.resize(before + mine.pairs);
      source.read(values.data() + before, mine.pairs * sizeof(Value));
    }
  }
  /// Checks the number of pairs of all files together.
  void check_pairs(std::uint64_t pairs) const {
    if (pairs == head_.pairs) return;
    throw_file_error(manifest(), "says that there are " + std::to_string(head_.pairs) +
                                     " pairs, and the files beside it have " + std::to_string(pairs) +
                                     "; save the table again");
  }

  /// Begins a table beside the one that the folder may hold.
  void begin(std::uint32_t shards, std::uint64_t save, std::uint64_t seed, double load_factor) {
    head_.shards = head_.shard = shards;
    head_.save = save;
    head_.seed = seed;
    head_.load_factor = load_factor;
  }
  /// Writes a shard's pairs: keys, then values.
  void write(std::uint32_t shard, std::uint64_t pairs, const void* keys, const void* values) const {
    write_file(file_of(shard), shard, pairs,
               {{keys, pairs * head_.key_bytes}, {values, pairs * head_.value_bytes}});
  }
  /// Makes the written files the folder's table.
  void commit(std::uint64_t pairs) const { write_file(manifest(), head_.shards, pairs, {}); }
  /// The table that the folder holds, if there is one.
  std::optional<sharded_head> held() const {
    try {
      file_reader source(manifest(), sharded_head::mark);
      sharded_head result;
      if (source.size() != sizeof(result)) return {};
      source.read(&result, sizeof(result));
      return result;
    } catch (const file_error&) {  // no manifest, or an unusable one
      return {};
    }
  }
  /// Removes a table's files except the manifest.
  void remove(const sharded_head& table) const {
    std::error_code ignored;
    for (std::uint32_t shard = 0; shard < smaller(table.shards, 64u); ++shard)
      std::filesystem::remove(folder_ / name_of(table, shard), ignored);
  }
  /// If the folder holds a table, removes shard files that do not belong to it. No other save may run there.
  void clear() const {
    const auto table = held();
    if (!table) return;
    std::error_code failed;
    std::vector<path> left;
    for (std::filesystem::directory_iterator it(folder_, failed), end; !failed && it != end;
         it.increment(failed)) {
      const std::string name = it->path().filename().string();
      sharded_head other;
      unsigned long long save = 0;
      if (std::sscanf(name.c_str(), "shard-%u-of-%u-%16llx.roost", &other.shard, &other.shards, &save) != 3)
        continue;
      other.save = save;
      const std::string whole = name_of(other, other.shard);
      if (save != table->save && (name == whole || name == whole + ".partial")) left.push_back(it->path());
    }
    for (const path& file : left) std::filesystem::remove(file, failed);
  }

 private:
  void write_file(const path& file, std::uint32_t shard, std::uint64_t pairs,
                  std::initializer_list<piece> columns) const {
    sharded_head head = head_;
    head.shard = shard;
    head.pairs = pairs;
    file_writer target(file);
    target.write(&head, sizeof(head));
    for (const piece& column : columns) target.write(column.memory, column.bytes);
    target.finish();
  }
  static std::string name_of(const sharded_head& head, std::uint32_t shard) {
    char name[64];
    std::snprintf(name, sizeof(name), "shard-%u-of-%u-%016llx.roost", shard, head.shards,
                  static_cast<unsigned long long>(head.save));
    return name;
  }
  sharded_head head_of(file_reader& source, const path& file) const {
    sharded_head result;
    if (source.size() < sizeof(result)) throw_file_error(file, "is no saved table: it is too short");
    source.read(&result, sizeof(result));
    const sharded_head own;
    if (result.byte_order != own.byte_order)
      throw_file_error(file, "was saved by a machine with another order of bytes");
    if (result.version != own.version) {
      throw_file_error(file, "is a sharded table of version " + std::to_string(result.version) +
                                 ", this program reads version " + std::to_string(own.version));
    }
    if (result.key_bytes != head_.key_bytes || result.value_bytes != head_.value_bytes) {
      throw_file_error(file, "has keys of " + std::to_string(result.key_bytes) + " and values of " +
                                 std::to_string(result.value_bytes) + " bytes; expected " +
                                 std::to_string(head_.key_bytes) + " and " +
                                 std::to_string(head_.value_bytes));
    }
    return result;
  }

  path folder_;
  double load_factor_most_;
  sharded_head head_;
};

/// A folder while a table is saved in it. Several saves may run at once, each with a lock. If a save is alone
/// in the folder, files that belong to no table must be from a killed save. Unless the table is kept, what
/// was created is removed again.
class saving_folder {
  using path = std::filesystem::path;

 public:
  /// Creates the folder if it does not exist. `files`: of the table, which begins them.
  saving_folder(const path& folder, const sharded_files& files) : files_(files) {
    std::error_code failed;
    for (path part = folder; !part.empty() && !std::filesystem::exists(part, failed);
         part = part.parent_path())
      made_.push_back(part);
    std::filesystem::create_directories(folder, failed);
    if (failed) {
      remove_made();
      throw_file_error(folder, "cannot be made: " + failed.message());
    }
    lock_.emplace(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    clear();
    for (int i = 0; i < 1000; ++i) {  // a save that is alone removes some files, in less than 10 s
      if (::flock(lock_->get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  saving_folder(const saving_folder&) = delete;
  ~saving_folder() {
    if (kept_) return;
    files_.remove(files_.head());
    remove_made();
  }
  void keep() { kept_ = true; }

  /// If no other save runs here, removes files of killed saves. (Keeps them if the file system has no locks.)
  void clear() const {
    if (::flock(lock_->get(), LOCK_EX | LOCK_NB) == 0) files_.clear();
  }

 private:
  void remove_made() const {
    std::error_code ignored;
    for (const path& part : made_) std::filesystem::remove(part, ignored);  // a folder only if it is empty
  }

  const sharded_files& files_;
  std::vector<path> made_;
  std::optional<descriptor> lock_;
  bool kept_ = false;
};

template <class Key, class Value>
sharded_files sharded_files_of(const std::filesystem::path& folder) {
  return {folder, sizeof(Key), bytes_of_value<Value>, default_layout<Key, Value>::load_factor_most};
}

/// Writes the pairs of a shard.
template <class Key, class Value, class Me, class Table>
void write_shard(const Me& me, const Table& table, const sharded_files& files) {
  using place_type = typename Me::place_type;
  if (table.empty()) return files.write(me.number(), 0, nullptr, nullptr);
  const auto& mine = table.shard(me.local());
  const place_type& place = me.place();
  array<Key, place_type> keys(place, mine.size());
  array<Value, place_type> values(place, bytes_of_value<Value> == 0 ? 0 : mine.size());
  retrieve_pairs(place, mine.ref(), keys.data(), values.data(), mine.size());
  files.write(me.number(), mine.size(), copy_to_host(place, keys).data(), copy_to_host(place, values).data());
}

template <class Key, class Value, class Shards, class Table>
void save_shards(const Shards& shards, const Table& table, const std::filesystem::path& folder) {
  std::random_device random;
  const std::uint64_t number = random() + (std::uint64_t{random()} << 32);
  shards.run([&](auto& me) {
    sharded_files files = sharded_files_of<Key, Value>(folder);
    std::optional<saving_folder> here;  // of the shard that leads
    if (me.number() == 0) here.emplace(folder, files);
    const gathered all = me.gather({number, table.size()});
    files.begin(me.count(), all(0), table.build_options().seed, table.build_options().load_factor);
    std::exception_ptr why;
    try {
      write_shard<Key, Value>(me, table, files);
    } catch (...) {
      why = std::current_exception();
    }
    const bool good = me.gather({why ? 1u : 0u}).sum() == 0;  // all shards have finished writing
    if (good && here) {
      const auto before = files.held();
      files.commit(all(0, 1));
      here->keep();
      if (before) files.remove(*before);
    }
    if (why) std::rethrow_exception(why);
    if (here) here->clear();
    me.gather({0});
  });
}

/// The table that build(head, keys, values) makes from the files in a folder.
template <class Key, class Value, class Shards, class Build>
auto load_shards(const Shards& shards, const std::filesystem::path& folder, const Build& build) {
  using place_type = typename Shards::place_type;
  sharded_files files = sharded_files_of<Key, Value>(folder);
  files.open();
  auto all_keys = make_each<Shards, array<Key, place_type>>(shards);
  auto all_values = make_each<Shards, array<Value, place_type>>(shards);
  shards.run([&](auto& me) {
    const place_type& place = me.place();
    vector_of<Key> keys;
    vector_of<Value> values;
    for (std::uint32_t shard = me.number(); shard < files.head().shards; shard += me.count())
      files.read<Key, Value>(shard, keys, values);
    of_shard<Shards>(all_keys, me) = copy_of<Key>(place, keys);
    of_shard<Shards>(all_values, me) = copy_of<Value>(place, values);
  });
  auto result = build(files.head(), all_keys, all_values);
  files.check_pairs(result.size());
  return result;
}

}  // namespace roost::detail
