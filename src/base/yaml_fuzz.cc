// A document that parses is written as one that means the same, and aliases do not make it large.
#include "base/fuzz.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/yaml.h"

namespace {

using namespace skiff;

// A whole number may come back as an integer: 3.0 is written as 3, as Go writes it.
bool same(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) return a.to_number<double>() == b.to_number<double>();
  if (a.is_array() && b.is_array()) {
    if (a.get_array().size() != b.get_array().size()) return false;
    for (std::size_t i = 0; i < a.get_array().size(); ++i) {
      if (!same(a.get_array()[i], b.get_array()[i])) return false;
    }
    return true;
  }
  if (a.is_object() && b.is_object()) {
    if (a.get_object().size() != b.get_object().size()) return false;
    for (const auto& [key, value] : a.get_object()) {
      const json::value* other = b.get_object().if_contains(key);
      if (other == nullptr || !same(value, *other)) return false;
    }
    return true;
  }
  return a == b;
}

struct Size {
  std::size_t values = 0;
  std::size_t bytes = 0;
};
void measure(const json::value& v, Size& out) {
  ++out.values;
  if (const json::object* o = v.if_object()) {
    for (const auto& member : *o) {
      out.bytes += member.key().size();
      measure(member.value(), out);
    }
  } else if (const json::array* a = v.if_array()) {
    for (const json::value& item : *a) measure(item, out);
  } else if (const json::string* text = v.if_string()) {
    out.bytes += text->size();
  }
}

// A number that is a key may be written longer than it was.
constexpr std::size_t kLongerKeys = 32;

}  // namespace

SKIFF_FUZZ(text) {
  const auto documents = yaml::parse_all(text);
  if (!documents) return;
  Size size;
  for (const json::value& document : *documents) measure(document, size);
  SKIFF_CHECK(size.values <= limits::kYamlNodes, "values are bounded");
  SKIFF_CHECK(size.bytes <= kLongerKeys * text.size() + limits::kYamlCopiedBytes,
              "what is copied is bounded");
  for (const json::value& document : *documents) {
    const std::string written = yaml::serialize(document);
    const auto again = yaml::parse(written);
    SKIFF_CHECK(again.has_value(), "what was written parses: " + again.error().message + written);
    SKIFF_CHECK(same(*again, document), "and means the same: " + written);
  }
}
