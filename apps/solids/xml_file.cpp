#include "xml_file.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <memory>
#include <new>
#include <roost/error.hpp>
#include <type_traits>
#include <utility>

#include "apps/shared/numbers.hpp"

namespace roost::tools {
namespace {

constexpr std::string_view xml_blanks = " \t\r\n";
constexpr char separator = '\n';  // between a namespace and a name; expat refuses namespaces that have it

unsigned long long line_of(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9  // which deprecates the other one
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

std::pair<std::string_view, std::string_view> split(std::string_view full) {
  const auto at = full.rfind(separator);
  if (at == full.npos) return {{}, full};
  return {full.substr(0, at), full.substr(at + 1)};
}

/// What expat calls. Exceptions must not pass through it, which is C: they wait here.
struct xml_calls {
  XML_Parser parser;
  std::function<void(const xml_tag&)> on_begin;
  std::function<void(std::string_view, std::string_view)> on_end;
  std::map<std::string, std::string, std::less<>> prefixes{};
  std::string text{};
  std::exception_ptr problem{};

  static void guarded(void* self, auto call) {
    auto& me = *static_cast<xml_calls*>(self);
    if (me.problem != nullptr) return;  // expat may call once more
    try {
      call(me);
    } catch (...) {
      me.problem = std::current_exception();
      XML_StopParser(me.parser, XML_FALSE);
    }
  }
  static void begin(void* self, const char* element, const char** given) {
    guarded(self, [&](xml_calls& me) {
      const auto [space, name] = split(element);
      me.text.clear();
      me.on_begin({space, name, given, me.prefixes});
    });
  }
  static void end(void* self, const char* element) {
    guarded(self, [&](xml_calls& me) {
      me.on_end(split(element).second, trimmed(me.text));
      me.text.clear();
    });
  }
  static void characters(void* self, const char* begin, int size) {
    guarded(self, [&](xml_calls& me) { me.text.append(begin, static_cast<std::size_t>(size)); });
  }
  static void prefix(void* self, const char* prefix, const char* space) {
    guarded(self, [&](xml_calls& me) {
      me.prefixes[prefix == nullptr ? "" : prefix] = space == nullptr ? "" : space;
    });
  }
  static void document_type(void* self, const char*, const char*, const char*, int) {
    guarded(self, [](xml_calls&) {
      throw invalid_argument("has a document type (<!DOCTYPE ...>), which is not read; remove it");
    });
  }
};

}  // namespace

void read_xml(std::string_view xml, std::function<void(const xml_tag&)> begin,
              std::function<void(std::string_view, std::string_view)> end) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, void (*)(XML_Parser)> owner(
      XML_ParserCreateNS(nullptr, separator), XML_ParserFree);
  auto* const parser = owner.get();
  if (parser == nullptr) throw std::bad_alloc();
  xml_calls calls{parser, std::move(begin), std::move(end)};
  XML_SetUserData(parser, &calls);
  XML_SetElementHandler(parser, xml_calls::begin, xml_calls::end);
  XML_SetCharacterDataHandler(parser, xml_calls::characters);
  XML_SetStartNamespaceDeclHandler(parser, xml_calls::prefix);
  XML_SetStartDoctypeDeclHandler(parser, xml_calls::document_type);
  constexpr std::size_t piece = 1 << 20;
  for (bool last = false; !last; xml.remove_prefix(std::min(piece, xml.size()))) {
    last = xml.size() <= piece;
    const auto size = static_cast<int>(std::min(piece, xml.size()));
    if (XML_Parse(parser, xml.data(), size, last ? 1 : 0) != XML_STATUS_ERROR) continue;
    const auto code = XML_GetErrorCode(parser);
    if (code == XML_ERROR_NO_MEMORY) throw std::bad_alloc();
    std::string why = fmt::format("is not XML ({}); it is damaged or cut short", XML_ErrorString(code));
    try {
      if (calls.problem != nullptr) std::rethrow_exception(calls.problem);
    } catch (const invalid_argument& e) {
      why = e.what();
    }
    throw invalid_argument(fmt::format("line {}: {}", line_of(parser), why));
  }
}

std::optional<std::string_view> xml_tag::find(std::string_view attribute, std::string_view in) const {
  for (const char** at = given; *at != nullptr; at += 2) {
    if (split(at[0]) == std::pair{in, attribute}) return trimmed(at[1]);
  }
  return {};
}

std::string_view xml_tag::operator[](std::string_view attribute) const {
  const auto found = find(attribute);
  if (!found) throw invalid_argument(fmt::format("<{}> has no '{}'", name, attribute));
  return *found;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(xml_blanks), text.size()));
  return text.substr(0, text.find_last_not_of(xml_blanks) + 1);
}

std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  const auto word = text.substr(0, text.find_first_of(xml_blanks));
  text.remove_prefix(word.size());
  return word;
}

double xml_number(std::string_view text, std::string_view of) {
  const auto number = number_of(text);
  if (!number) throw invalid_argument(fmt::format("'{}' is not a number ({})", text.substr(0, 40), of));
  return *number;
}

std::int64_t xml_index(std::string_view text, std::string_view of) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < 0 || number > 0x7fffffff)
    throw invalid_argument(fmt::format("'{}' is not an index ({})", text.substr(0, 40), of));
  return number;
}

}  // namespace roost::tools
