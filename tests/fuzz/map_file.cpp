#include "fuzz.hpp"
#include "roost/stadium/stadium_file.hpp"

// Files whose checksums are right, and whose contents are anything: a map that can be searched, or an error.
// The first byte of the input tells whether to begin with a head that a map has.

namespace {

using map = roost::stadium_map<std::uint32_t, std::uint32_t>;

/// The contents of a file of a small map, without checksums.
std::string saved(const std::filesystem::path& file) {
  std::vector<std::uint32_t> keys(50), values(50);
  for (std::uint32_t i = 0; i < keys.size(); ++i) keys[i] = values[i] = i * 7919;
  const roost::host cpu(1);
  map filled(cpu, keys.size());
  filled.insert(cpu, keys, values);
  save(cpu, filled, file);
  roost::file_reader source(file, "roost stadium_map\n");
  std::string contents(source.size(), '\0');
  source.read(contents.data(), contents.size());
  return contents;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzzed_file file(".roost");
  static const std::string good = saved(file.path());
  static const roost::host cpu(1);
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) {  // pairs of bytes: where, and what to put there
    std::string changed = good;
    for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
      const auto at = static_cast<unsigned char>(bytes[i]) + 256u * static_cast<unsigned char>(bytes[i + 1]);
      changed[at % changed.size()] = bytes[i + 2];
    }
    bytes = changed;
  }
  if ((data[0] & 2) != 0) {  // as it is: checksums are wrong
    file.write(bytes);
  } else {
    roost::file_writer target(file.path());
    target.write(bytes.data(), bytes.size());
    target.finish();
  }
  try {
    auto loaded = roost::load_stadium_map<std::uint32_t, std::uint32_t>(cpu, file.path());
    std::vector<std::uint32_t> queries(64), results(64);
    for (std::uint32_t i = 0; i < queries.size(); ++i) queries[i] = i * 7919;
    loaded.find(cpu, queries, results, 1u);
    loaded.erase(cpu, queries);
    loaded.size(cpu);
  } catch (const roost::file_error&) {
  } catch (const roost::out_of_memory&) {
  }
  return 0;
}
