#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// \file
/// XML, as expat reads it.

namespace roost::tools {

/// The beginning of an element. Values are without the blanks around them.
struct xml_tag {
  std::string_view space, name;  ///< its namespace, and its name without a prefix
  const char** given;            ///< attributes, for find
  const std::map<std::string, std::string, std::less<>>& prefixes;  ///< and their namespaces, so far

  /// An attribute without a namespace, or in this one.
  std::optional<std::string_view> find(std::string_view attribute, std::string_view in = {}) const;
  /// The same; throws if there is none.
  std::string_view operator[](std::string_view attribute) const;
};

/// Calls `begin` and `end` for each element of a text in UTF-8, UTF-16 or what it declares. `end` gets the
/// text since the last tag, without the blanks around it. Throws invalid_argument, with the line, for a text
/// that is not XML or has a document type (which could define parts of it elsewhere), and if a call does.
void read_xml(std::string_view xml, std::function<void(const xml_tag&)> begin,
              std::function<void(std::string_view name, std::string_view text)> end);

/// What a text without blanks around it says; `of` says which, if it is none. Throw invalid_argument.
double xml_number(std::string_view text, std::string_view of);
std::int64_t xml_index(std::string_view text, std::string_view of);  ///< from 0 on, below 2^31

/// Without the blanks around it.
std::string_view trimmed(std::string_view text);
/// Takes the first word off a text; empty at its end.
std::string_view take_word(std::string_view& text);

}  // namespace roost::tools
