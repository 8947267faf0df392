#include "model_files.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <roost/error.hpp>
#include <utility>

namespace roost::tools {
namespace {

int hex(char c) {
  const auto lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= '0' && lower <= '9' ? lower - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::string part_name(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    char c = name[i] == '\\' ? '/' : name[i];
    if (c == '%' && i + 2 < name.size() && hex(name[i + 1]) >= 0 && hex(name[i + 2]) >= 0) {
      c = static_cast<char>(16 * hex(name[i + 1]) + hex(name[i + 2]));
      i += 2;
    }
    if (c != '/' || !result.empty())
      result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;  // other letters are kept
  }
  return result;
}

zip_archive::zip_archive(std::string_view bytes) {
  zip_error_t why;
  zip_error_init(&why);
  auto* const source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &why);
  if (source != nullptr) zip_ = zip_open_from_source(source, ZIP_RDONLY, &why);
  if (zip_ == nullptr) {
    const std::string said = zip_error_strerror(&why);
    zip_source_free(source);
    zip_error_fini(&why);
    refuse_because(fmt::format("is no ZIP archive ({}); it is damaged or cut short", said));
  }
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(zip_get_num_entries(zip_, 0), 0));
  for (std::uint64_t i = 0; i < size; ++i) {
    const auto* const name = zip_get_name(zip_, i, ZIP_FL_ENC_RAW);
    if (name != nullptr) entries_[part_name(name)].push_back(i);
  }
}

zip_archive::~zip_archive() { zip_discard(zip_); }

std::optional<std::string> zip_archive::read(std::string_view name) {
  const auto found = entries_.find(part_name(name));
  if (found == entries_.end()) return {};
  const auto wrong = [&](std::string_view why) {
    refuse_because(fmt::format("its part '{}' {}", name.substr(0, 80), why));
  };
  if (found->second.size() > 1) wrong("is there several times");
  zip_stat_t of;
  if (zip_stat_index(zip_, found->second[0], 0, &of) != 0) wrong("cannot be found; the file is damaged");
  if (of.encryption_method != ZIP_EM_NONE) wrong("is encrypted; decrypt it first");
  if (of.size > left_) wrong("and others have more than 4 GiB; use a smaller mesh");
  left_ -= of.size;
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> stream(zip_fopen_index(zip_, found->second[0], 0),
                                                                 zip_fclose);
  if (stream == nullptr) wrong(fmt::format("cannot be unpacked ({})", zip_strerror(zip_)));
  constexpr std::size_t piece = 1 << 20;
  std::string result;
  for (std::int64_t got = 1; got > 0 && result.size() <= of.size;) {
    const auto size = result.size();
    result.resize(size + piece);
    got = zip_fread(stream.get(), result.data() + size, piece);
    if (got < 0) wrong("cannot be unpacked; the file is damaged");  // also if its sum is another one
    result.resize(size + static_cast<std::size_t>(got));
  }
  if (result.size() != of.size) wrong("has another size than the file says; it is damaged");
  return result;
}

std::string zip_archive::read_only_one(std::string_view ending) {
  const std::string* found = nullptr;
  for (const auto& [name, where] : entries_) {
    if (!name.ends_with(ending)) continue;
    if (found != nullptr) refuse_because(fmt::format("is an archive of several {} files; unzip it", ending));
    found = &name;
  }
  if (found == nullptr) refuse_because(fmt::format("is an archive without a {} file", ending));
  return read(*found).value();
}

std::uint64_t assembly::measure(const std::string& name, int depth) {
  constexpr std::uint64_t most = std::uint64_t{1} << 27;
  const auto found = objects.find(name);
  if (found == objects.end())
    refuse_because(
        fmt::format("places object {}, which it does not have", name.substr(name.rfind('\n') + 1)));
  auto& what = found->second;
  if (what.size != 0) return what.size;
  if (what.open) refuse_because(fmt::format("{} is a part of itself", what.said));
  if (depth > 100) refuse_because(fmt::format("{} is more than 100 levels deep in others", what.said));
  for (std::size_t i = 0; i < what.corners.size(); ++i) {
    if (static_cast<std::size_t>(what.corners[i]) >= what.vertices.size())
      refuse_because(fmt::format(
          "{}: triangle {} names vertex {}, but there are {} vertices, from 0 on; the file is damaged",
          what.said, i / 3 + 1, what.corners[i], what.vertices.size()));
  }
  what.open = true;
  auto size = 1 + what.vertices.size();
  for (const auto& part : what.components) size += measure(part.object, depth + 1);
  if (size > most)
    refuse_because(fmt::format("{} has more than {} vertices with all copies", what.said, most));
  what.open = false;
  return what.size = size;
}

void assembly::place(const object& what, const affine& where, polygons& result,
                     std::map<std::string, int>& left_out) {
  if (!what.left_out.empty()) {
    ++left_out[what.left_out];
    return;
  }
  const auto first = static_cast<std::int64_t>(result.vertices.size());
  for (const auto& v : what.vertices) result.vertices.push_back(where(v));
  for (std::size_t i = 0; i < what.corners.size(); i += 3) {
    for (const auto corner : std::span(what.corners).subspan(i, 3)) result.corners.push_back(first + corner);
    if (mirrors(where)) std::swap(result.corners.back(), *(result.corners.end() - 2));
    result.ends.push_back(result.corners.size());
  }
  for (const auto& part : what.components)
    place(objects.at(part.object), where.after(part.where), result, left_out);
}

polygons assembly::build(std::span<const placed> items) {
  object all;
  all.said = "the file";
  all.components.assign(items.begin(), items.end());
  const std::string root = "\n";  // no object is called so
  objects[root] = std::move(all);
  measure(root, 0);
  polygons result;
  std::map<std::string, int> left_out;
  place(objects.at(root), {}, result, left_out);
  for (const auto& [why, times] : left_out)
    result.notes.push_back(fmt::format("{} of its objects left out: {}", times, why));
  return result;
}

}  // namespace roost::tools
