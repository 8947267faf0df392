// Bodies of roost/sharded_file.hpp.

namespace roost {
namespace detail {

/// What the files of a saved table begin with: the manifest, and the file of each shard.
struct sharded_head {
  static constexpr std::string_view mark = "roost sharded table\n";

  char its_mark[24] = {};
  std::uint32_t version = 1;
  std::uint32_t byte_order = 0x01020304;
  std::uint32_t key_bytes = 0, value_bytes = 0;
  std::uint32_t shards = 0;
  std::uint32_t shard = 0;  // of the manifest as many as there are
  std::uint64_t save = 0;   // a number that all files of one save() have
  std::uint64_t pairs = 0;
  std::uint64_t seed = 0;
  double load_factor = 0;

  sharded_head() { std::memcpy(its_mark, mark.data(), mark.size()); }
};

/// The files of a saved table in a folder.
class sharded_files {
  using path = std::filesystem::path;

 public:
  sharded_files(const path& folder, std::size_t key_bytes, std::size_t value_bytes) : folder_(folder) {
    head_.key_bytes = static_cast<std::uint32_t>(key_bytes);
    head_.value_bytes = static_cast<std::uint32_t>(value_bytes);
  }

  path manifest() const { return folder_ / "manifest.roost"; }
  path file_of(std::uint32_t shard) const { return file_of(head_, shard); }

  /// The manifest's head, which says how many shards there are and what the options were.
  const sharded_head& head() const { return head_; }

  /// Reads the manifest.
  void open() {
    const file_reader source(manifest(), sharded_head::mark);
    head_ = head_of(source, manifest());
    if (head_.shard != head_.shards || head_.shards == 0 || !(head_.load_factor > 0))
      throw_file_error(manifest(), "is no manifest of a sharded table");
  }

  /// Calls take(data, pairs) for what a shard's file has.
  template <class Take>
  void read(std::uint32_t shard, const Take& take) const {
    const path file = file_of(shard);
    const file_reader source(file, sharded_head::mark);
    const sharded_head mine = head_of(source, file);
    if (mine.save != head_.save || mine.shard != shard || mine.shards != head_.shards)
      throw_file_error(file, "belongs to another table than the manifest beside it");
    const std::size_t bytes = source.size() - sizeof(sharded_head), each = mine.key_bytes + mine.value_bytes;
    if (mine.pairs > bytes || mine.pairs * each != bytes)
      throw_file_error(file, "has another size than its head says; save the table again");
    if (mine.pairs != 0) take(source.data() + sizeof(sharded_head), mine.pairs);
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
    sharded_head mine = head_;
    mine.shard = shard;
    mine.pairs = pairs;
    file_writer target(file_of(shard));
    target.write(&mine, sizeof(mine));
    target.write(keys, pairs * mine.key_bytes);
    target.write(values, pairs * mine.value_bytes);
    target.finish();
  }
  /// Makes what was written the table that the folder holds, and removes that which it held.
  void commit(std::uint64_t pairs) const {
    std::optional<sharded_head> before;
    try {
      const file_reader source(manifest(), sharded_head::mark);
      if (source.size() >= sizeof(sharded_head)) {
        before.emplace();
        std::memcpy(&*before, source.data(), sizeof(sharded_head));
      }
    } catch (const file_error&) {  // none, or one that is of no use
    }
    sharded_head mine = head_;
    mine.pairs = pairs;
    file_writer target(manifest());
    target.write(&mine, sizeof(mine));
    target.finish();
    for (std::uint32_t shard = 0; before && shard < smaller(before->shards, 64u); ++shard)
      remove(*before, shard);
  }
  /// Removes what a save() has written that does not come to its end.
  void remove_all() const {
    for (std::uint32_t shard = 0; shard < head_.shards; ++shard) remove(head_, shard);
  }

 private:
  path file_of(const sharded_head& head, std::uint32_t shard) const {
    char name[64];
    std::snprintf(name, sizeof(name), "shard-%u-of-%u-%016llx.roost", shard, head.shards,
                  static_cast<unsigned long long>(head.save));
    return folder_ / name;
  }
  void remove(const sharded_head& head, std::uint32_t shard) const {
    std::error_code ignored;
    std::filesystem::remove(file_of(head, shard), ignored);
  }
  sharded_head head_of(const file_reader& source, const path& file) const {
    sharded_head result;
    if (source.size() < sizeof(result)) throw_file_error(file, "is no saved table: it is too short");
    std::memcpy(&result, source.data(), sizeof(result));
    const sharded_head own;
    if (result.byte_order != own.byte_order)
      throw_file_error(file, "was saved by a machine with another order of bytes");
    if (result.version != own.version) {
      throw_file_error(file, "is a sharded table of version " + std::to_string(result.version) +
                                 ", this program reads version " + std::to_string(own.version));
    }
    if (result.key_bytes != head_.key_bytes || result.value_bytes != head_.value_bytes) {
      throw_file_error(file, "has keys of " + std::to_string(result.key_bytes) + " and values of " +
                                 std::to_string(result.value_bytes) + " bytes, asked for are " +
                                 std::to_string(head_.key_bytes) + " and " +
                                 std::to_string(head_.value_bytes));
    }
    return result;
  }

  path folder_;
  sharded_head head_;
};

template <class Value>
constexpr std::size_t bytes_of_value = std::is_same_v<Value, none> ? 0 : sizeof(Value);

template <class Key, class Value, class Shards, class Table>
void save_shards(const Shards& shards, const Table& table, const std::filesystem::path& folder) {
  using place_type = typename Shards::place_type;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw_file_error(folder, "cannot be made: " + failed.message());
  std::random_device random;
  const std::uint64_t number = random() + (std::uint64_t{random()} << 32);
  shards.run([&](auto& me) {
    sharded_files files(folder, sizeof(Key), bytes_of_value<Value>);
    const gathered all = me.gather({number, table.size()});
    files.begin(me.count(), all(0), table.build_options().seed, table.build_options().load_factor);
    bool good = false;
    std::exception_ptr why;
    try {
      if (!table.empty()) {
        const auto& mine = table.shard(me.local());
        const place_type& place = me.place();
        array<Key, place_type> keys(place, mine.size());
        array<Value, place_type> values(place, bytes_of_value<Value> == 0 ? 0 : mine.size());
        retrieve_pairs(place, mine.ref(), keys.data(), values.data(), mine.size());
        files.write(me.number(), mine.size(), copy_to_host(place, keys).data(),
                    copy_to_host(place, values).data());
      } else {
        files.write(me.number(), 0, nullptr, nullptr);
      }
      good = true;
    } catch (...) {
      why = std::current_exception();
    }
    if (me.gather({good ? 0u : 1u}).sum() == 0) {
      if (me.number() == 0) files.commit(all(0, 1));
      me.gather({0});
      return;
    }
    me.gather({0});  // all have written what they write
    if (me.number() == 0) files.remove_all();
    if (why) std::rethrow_exception(why);
  });
}

template <class Key, class Value, class Shards, class Build>
void load_shards(const Shards& shards, const std::filesystem::path& folder, const Build& build) {
  using place_type = typename Shards::place_type;
  sharded_files files(folder, sizeof(Key), bytes_of_value<Value>);
  files.open();
  auto all_keys = make_each<Shards, array<Key, place_type>>(shards);
  auto all_values = make_each<Shards, array<Value, place_type>>(shards);
  shards.run([&](auto& me) {
    const place_type& place = me.place();
    std::vector<Key> keys;
    std::vector<Value> values;
    for (std::uint32_t shard = me.number(); shard < files.head().shards; shard += me.count()) {
      files.read(shard, [&](const char* data, std::size_t pairs) {
        const std::size_t before = keys.size();
        keys.resize(before + pairs);
        std::memcpy(static_cast<void*>(keys.data() + before), data, pairs * sizeof(Key));
        if constexpr (bytes_of_value<Value> != 0) {
          values.resize(before + pairs);
          std::memcpy(static_cast<void*>(values.data() + before), data + pairs * sizeof(Key),
                      pairs * sizeof(Value));
        }
      });
    }
    of_shard<Shards>(all_keys, me) = copy_to(place, keys);
    of_shard<Shards>(all_values, me) = copy_to(place, values);
  });
  build(files.head(), all_keys, all_values);
}

}  // namespace detail

template <class Key, class Value, class Shards>
void save(const Shards& shards, const sharded_map<Key, Value, Shards>& map,
          const std::filesystem::path& folder) {
  detail::save_shards<Key, Value>(shards, map, folder);
}

template <class Key, class Shards>
void save(const Shards& shards, const sharded_set<Key, Shards>& set, const std::filesystem::path& folder) {
  detail::save_shards<Key, none>(shards, set, folder);
}

template <class Key, class Value, class Shards>
sharded_map<Key, Value, Shards> load_sharded_map(const Shards& shards, const std::filesystem::path& folder) {
  sharded_map<Key, Value, Shards> result;
  detail::load_shards<Key, Value>(
      shards, folder, [&](const auto& head, const auto& keys, const auto& values) {
        result = sharded_map<Key, Value, Shards>(shards, keys, values,
                                                 {.load_factor = head.load_factor, .seed = head.seed});
      });
  return result;
}

template <class Key, class Shards>
sharded_set<Key, Shards> load_sharded_set(const Shards& shards, const std::filesystem::path& folder) {
  sharded_set<Key, Shards> result;
  detail::load_shards<Key, none>(shards, folder, [&](const auto& head, const auto& keys, const auto&) {
    result = sharded_set<Key, Shards>(shards, keys, {.load_factor = head.load_factor, .seed = head.seed});
  });
  return result;
}

}  // namespace roost
