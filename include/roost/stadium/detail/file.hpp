#pragma once

#include <bit>
#include <string>
#include <string_view>

#include "roost/file.hpp"
#include "roost/stadium/stadium_map.hpp"

namespace roost::detail {

/// The file of a saved stadium_map.
template <class Key, class Value, class Place>
struct stadium_file {
  using map = stadium_map<Key, Value, Place>;
  using table = stadium_table<Key, Value, Place>;
  using item = typename table::item;
  using head = typename table::head;
  static constexpr std::string_view mark = "roost stadium_map\n";

  struct header {
    char mark[24] = {};
    std::uint32_t version = 1;  // 2: behind the head are the bytes of a text, in 8 bytes, and the text
    std::uint32_t byte_order = 0x01020304;
    std::uint32_t key_bytes = sizeof(Key), value_bytes = sizeof(Value), item_bytes = sizeof(item);
    std::uint32_t ticket_bits, grows, option_region_slots;
    std::uint32_t regions, region_slots, region_words, guards;
    std::uint64_t seed;
    double load_factor;
  };

  static void save(const Place& place, const map& saved, const std::filesystem::path& file,
                   std::string_view types) {
    const table& source = saved.table_;
    const auto& plan = source.plan_;
    const auto& options = source.options_;
    header first{.ticket_bits = static_cast<std::uint32_t>(options.ticket_bits),
                 .grows = options.grows ? 1u : 0u,
                 .option_region_slots = options.region_slots,
                 .regions = plan.regions,
                 .region_slots = plan.region_slots,
                 .region_words = plan.region_words,
                 .guards = plan.guards,
                 .seed = plan.seed,
                 .load_factor = options.load_factor};
    std::memcpy(first.mark, mark.data(), mark.size());
    if (!types.empty()) first.version = 2;
    const auto heads = copy_to_host(place, source.heads_);
    const auto words = copy_to_host(place, source.words_);
    const ticket_board::reader<host, Key, Value> board(
        {const_cast<std::uint64_t*>(words.data()), nullptr, nullptr, nullptr, nullptr, 0}, plan);

    file_writer target(file);
    target.write(&first, sizeof(first));
    if (const std::uint64_t bytes = types.size(); bytes != 0) {
      target.write(&bytes, sizeof(bytes));
      target.write(types.data(), bytes);
    }
    target.write(heads.data(), heads.size() * sizeof(head));
    target.write(words.data(), words.size() * sizeof(words[0]));
    const std::size_t near = source.bodies_.near_size(), slots = plan.slots(),
                      most = larger<std::size_t>(file_end::block / sizeof(item), 1);
    for (std::size_t slot = 0, n; slot < slots; slot += n) {
      n = smaller(most, (slot < near ? near : slots) - slot);
      std::vector<item> bodies(n);
      if (slot < near) {
        place.copy_to_host(bodies.data(), source.bodies_.near() + slot, n * sizeof(item));
      } else {
        std::memcpy(static_cast<void*>(bodies.data()), source.bodies_.far() + (slot - near),
                    n * sizeof(item));
      }
      for (std::size_t i = 0; i < n; ++i) {  // do not write uninitialised memory
        if (!board.occupied(slot + i) && !board.erased(slot + i))
          std::memset(static_cast<void*>(&bodies[i]), 0, sizeof(item));
      }
      target.write(bodies.data(), n * sizeof(item));
    }
    target.finish();
  }

  static map load(const Place& place, const std::filesystem::path& file, residence bodies, std::size_t budget,
                  std::string* types) {
    file_reader source(file, mark);
    if (source.size() < sizeof(header)) throw_file_error(file, "is no saved stadium_map: it is too short");
    header first;
    source.read(&first, sizeof(first));
    const std::size_t parts = check_types(source, file, first, types);
    if (!makes_sense(first)) throw_file_error(file, "is no stadium_map: its head does not make sense");
    const stadium_options options{.load_factor = first.load_factor,
                                  .ticket_bits = static_cast<int>(first.ticket_bits),
                                  .bodies = bodies,
                                  .budget = budget,
                                  .seed = first.seed,
                                  .grows = first.grows != 0,
                                  .region_slots = first.option_region_slots};
    const ticket_board::plan plan{ticket_board::shape::of(options.ticket_bits),
                                  first.regions,
                                  first.region_slots,
                                  first.region_words,
                                  first.guards,
                                  first.seed};
    const auto heads = read_heads(source, file, plan, parts);
    table target(place, plan, options);
    target.forget();
    place.copy_from_host(target.heads_.data(), heads.data(), target.heads_.bytes());
    read(place, source, target.words_.data(), target.words_.bytes());
    const std::size_t near = target.bodies_.near_size();
    read(place, source, target.bodies_.near(), near * sizeof(item));
    source.read(target.bodies_.far(), (plan.slots() - near) * sizeof(item));
    target.count_slots(place);
    if (!target.good_tickets(place))
      throw_file_error(file, "is no stadium_map: its tickets do not make sense");
    return map(std::move(target));
  }

 private:
  /// Checks the version and the types of a file. `types` becomes what the file says of them. Returns the
  /// bytes of the file that come next.
  static std::size_t check_types(file_reader& source, const std::filesystem::path& file, const header& first,
                                 std::string* types) {
    const header own{};
    if (first.byte_order != own.byte_order)
      throw_file_error(file, "was saved by a machine with another order of bytes");
    if (first.version != 1 && first.version != 2) {
      throw_file_error(file, "is a stadium_map of version " + std::to_string(first.version) +
                                 ", this program reads versions 1 and 2");
    }
    std::size_t left = source.size() - sizeof(first);
    std::string saved;
    if (first.version == 2) {
      std::uint64_t bytes = 0;
      if (left >= sizeof(bytes)) source.read(&bytes, sizeof(bytes));
      if (bytes == 0 || bytes > left - sizeof(bytes))
        throw_file_error(file, "is no stadium_map: the text behind its head does not make sense");
      saved.resize(bytes);
      source.read(saved.data(), bytes);
      left -= sizeof(bytes) + bytes;
    }
    if (types != nullptr) {
      if (!types->empty() && !saved.empty() && *types != saved)
        throw_file_error(file, "has " + saved + "; expected " + *types);
      *types = saved;
    }
    if (first.key_bytes != own.key_bytes || first.value_bytes != own.value_bytes ||
        first.item_bytes != own.item_bytes) {
      throw_file_error(file, "has keys of " + std::to_string(first.key_bytes) + " and values of " +
                                 std::to_string(first.value_bytes) + " bytes; expected " +
                                 std::to_string(own.key_bytes) + " and " + std::to_string(own.value_bytes));
    }
    return left;
  }

  /// Whether each number of a head, by itself, is possible for a table of some place.
  static bool makes_sense(const header& it) {
    return std::has_single_bit(it.ticket_bits) && it.ticket_bits <= 8 && it.grows <= 1 &&
           it.load_factor > 0 && it.load_factor <= 1 && std::has_single_bit(it.guards) &&
           it.guards <= stadium_tuning<cuda>::guards_most && it.regions != 0 && it.regions < 1u << 31 &&
           it.region_slots > 2 && it.region_slots < 1u << 31 &&
           prime_from(it.region_slots) == it.region_slots &&
           it.region_words ==
               ceil_div(it.region_slots, ticket_board::shape::of(static_cast<int>(it.ticket_bits)).per_word);
  }

  /// The heads of the regions of a file of which `parts` bytes are left.
  static std::vector<head> read_heads(file_reader& source, const std::filesystem::path& file,
                                      const ticket_board::plan& plan, std::size_t parts) {
    // Each part is compared before the parts are added: the sum of very large numbers could overflow to a
    // small one.
    if (plan.regions > parts / sizeof(head) || plan.words() > parts / sizeof(std::uint64_t) ||
        plan.slots() > parts / sizeof(item) ||
        parts !=
            plan.regions * sizeof(head) + plan.words() * sizeof(std::uint64_t) + plan.slots() * sizeof(item))
      throw_file_error(file, "is no stadium_map: its parts have other sizes than its head says");
    std::vector<head> heads(plan.regions);
    source.read(heads.data(), heads.size() * sizeof(head));
    for (std::uint32_t r = 0; r < plan.regions; ++r) {
      const head& it = heads[r];
      if (it.flags > (head::used_up | head::packed) || it.longest > plan.region_slots ||
          it.far >= plan.regions) {
        throw_file_error(
            file, "is no stadium_map: what it says of region " + std::to_string(r) + " does not make sense");
      }
    }
    return heads;
  }

  /// Reads to memory of the place.
  static void read(const Place& place, file_reader& source, void* target, std::size_t bytes) {
    if constexpr (std::is_same_v<Place, host>) {
      source.read(target, bytes);
    } else {
      std::vector<char> piece(smaller(bytes, file_end::block));
      for (std::size_t at = 0, n; at < bytes; at += n) {
        n = smaller(piece.size(), bytes - at);
        source.read(piece.data(), n);
        place.copy_from_host(static_cast<char*>(target) + at, piece.data(), n);
        place.synchronize();
      }
    }
  }
};

}  // namespace roost::detail
