#include "cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace skiff::cli {
namespace {

constexpr std::size_t kTextWidth = 76;
constexpr std::string_view kSchemas = "#/components/schemas/";
// A schema that contains itself many times over must still come to an end.
constexpr int kDepth = 32;

// Words on lines of at most `width`, each after `indent` spaces. Line ends in the text stay.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  for (const std::string_view paragraph : split(text, '\n')) {
    std::string line;
    for (const std::string_view word : split(paragraph, ' ')) {
      if (word.empty()) continue;
      if (!line.empty() && line.size() + 1 + word.size() > width) {
        out += std::string(indent, ' ') + line + "\n";
        line.clear();
      }
      line += (line.empty() ? "" : " ") + std::string(word);
    }
    if (!line.empty()) out += std::string(indent, ' ') + line;
    out += "\n";
  }
  return out;
}

class Explainer {
 public:
  explicit Explainer(const json::value& document) : document_(document) {}

  const json::value* find_kind(const api::Resource& resource) const {
    for (const auto& member : json::get_object(document_, {"components", "schemas"})) {
      for (const json::value& gvk :
           json::get_array(member.value(), {"x-kubernetes-group-version-kind"})) {
        if (json::get_string(gvk, {"group"}) == resource.group &&
            json::get_string(gvk, {"version"}) == resource.version &&
            json::get_string(gvk, {"kind"}) == resource.kind) {
          return &member.value();
        }
      }
    }
    return nullptr;
  }

  // The schema itself where it is no reference.
  const json::value& resolve(const json::value& schema) const {
    const std::string_view ref = json::get_string(schema, {"$ref"});
    if (!ref.starts_with(kSchemas)) return schema;
    const json::value* found =
        json::find(document_, {"components", "schemas", ref.substr(kSchemas.size())});
    return found == nullptr ? schema : *found;
  }

  // The property called `name` of the schema, of its items, of its values or of one of its parts.
  const json::value* property(const json::value& schema, std::string_view name,
                              int depth = 0) const {
    if (depth > kDepth) return nullptr;
    const json::value& s = resolve(schema);
    if (const json::value* found = json::find(s, {"properties", name})) return found;
    if (const json::value* items = json::find(s, {"items"})) {
      return property(*items, name, depth + 1);
    }
    if (const json::value* values = json::find(s, {"additionalProperties"});
        values != nullptr && values->is_object()) {
      return property(*values, name, depth + 1);
    }
    for (const json::value& part : json::get_array(s, {"allOf"})) {
      if (const json::value* found = property(part, name, depth + 1)) return found;
    }
    return nullptr;
  }

  std::string type(const json::value& schema) const {
    if (const json::value* items = json::find(schema, {"items"})) return "[]" + type(*items);
    const json::value* values = json::find(schema, {"additionalProperties"});
    if (values != nullptr && values->is_object()) return "map[string]" + type(*values);
    const json::array& parts = json::get_array(schema, {"allOf"});
    if (parts.size() == 1 && json::find(schema, {"properties"}) == nullptr) {
      return type(parts.front());
    }
    const std::string_view ref = json::get_string(schema, {"$ref"});
    if (ref.empty()) return own_type(schema);
    const json::value& target = resolve(schema);
    const std::string_view target_type = json::get_string(target, {"type"});
    if (!target_type.empty() && target_type != "object") return std::string(target_type);
    const std::string_view name = ref.substr(ref.find_last_of('/') + 1);
    const std::string_view last = name.substr(name.find_last_of('.') + 1);
    return last.empty() ? "Object" : std::string(last);
  }

  std::string description(const json::value& schema, int depth = 0) const {
    if (depth > kDepth) return {};
    const json::value& s = resolve(schema);
    std::string out(json::get_string(s, {"description"}));
    const auto add = [&](const json::value& part) {
      const std::string more = description(part, depth + 1);
      if (!out.empty() && !more.empty()) out += "\n";
      out += more;
    };
    if (&s != &schema && out.empty()) out = json::get_string(schema, {"description"});
    for (const json::value& part : json::get_array(s, {"allOf"})) add(part);
    if (const json::value* items = json::find(s, {"items"})) add(*items);
    if (const json::value* values = json::find(s, {"additionalProperties"});
        values != nullptr && values->is_object()) {
      add(*values);
    }
    return out;
  }

  std::string fields(const json::value& schema, std::size_t level, bool recursive,
                     std::set<std::string, std::less<>> seen) const {
    const std::string_view ref = json::get_string(schema, {"$ref"});
    if (!ref.empty() && !seen.emplace(ref).second) return {};
    if (level > kDepth) return {};
    const json::value& s = resolve(schema);
    std::string out;
    std::vector<std::string_view> names;
    for (const auto& member : json::get_object(s, {"properties"})) {
      names.emplace_back(member.key().data(), member.key().size());
    }
    std::ranges::sort(names);
    for (const std::string_view name : names) {
      const json::value& field = *json::find(s, {"properties", name});
      out += one_field(s, name, field, level, recursive);
      if (recursive) out += fields(field, level + 1, true, seen);
    }
    for (const json::value& part : json::get_array(s, {"allOf"})) {
      out += fields(part, level, recursive, seen);
    }
    if (const json::value* items = json::find(s, {"items"})) {
      out += fields(*items, level, recursive, seen);
    }
    if (const json::value* values = json::find(s, {"additionalProperties"});
        values != nullptr && values->is_object()) {
      out += fields(*values, level, recursive, seen);
    }
    return out;
  }

  static std::string enumeration(const json::value& schema, std::string_view before,
                                 std::string_view between, std::size_t most) {
    std::string out;
    const json::array& values = json::get_array(schema, {"enum"});
    for (std::size_t i = 0; i < values.size(); ++i) {
      out += i == 0 ? before : between;
      if (i == most) return out + "....";
      const bool empty = values[i].is_string() && values[i].get_string().empty();
      out += empty                   ? "\"\""
             : values[i].is_string() ? std::string(json::view(values[i].get_string()))
                                     : json::serialize(values[i]);
    }
    return out;
  }

 private:
  static std::string own_type(const json::value& schema) {
    const std::string_view name = json::get_string(schema, {"type"});
    return name.empty() || name == "object" ? "Object" : std::string(name);
  }

  std::string one_field(const json::value& owner, std::string_view name, const json::value& field,
                        std::size_t level, bool recursive) const {
    const std::size_t indent = 2 * level;
    std::string out = fmt::format("{}{}\t<{}>", std::string(indent, ' '), name, type(field));
    for (const json::value& required : json::get_array(owner, {"required"})) {
      if (required.is_string() && json::view(required.get_string()) == name) out += " -required-";
    }
    out += enumeration(field, fmt::format("\n{}enum: ", std::string(indent, ' ')), ", ", 4) + "\n";
    if (recursive) return out;
    const std::string_view text = json::get_string(field, {"description"}, "<no description>");
    return out + wrapped(text, kTextWidth + 2 - indent, indent + 2) + "\n";
  }

  const json::value& document_;
};

}  // namespace

std::string document_target(const json::value& index, const api::Resource& resource) {
  const std::string path = resource.group.empty()
                               ? "api/" + resource.version
                               : fmt::format("apis/{}/{}", resource.group, resource.version);
  return std::string(json::get_string(index, {"paths", path, "serverRelativeURL"}));
}

Result<std::string> explain_text(const json::value& document, const api::Resource& resource,
                                 const std::vector<std::string>& fields, bool recursive) {
  const Explainer explainer(document);
  const json::value* at = explainer.find_kind(resource);
  if (at == nullptr) {
    return fail(Code::kNotFound, fmt::format("the server does not say what a {} of {} looks like",
                                             resource.kind, resource.api_version()));
  }
  std::string out;
  if (!resource.group.empty()) out += fmt::format("GROUP:      {}\n", resource.group);
  out += fmt::format("KIND:       {}\nVERSION:    {}\n\n", resource.kind, resource.version);
  for (const std::string& name : fields) {
    at = explainer.property(*at, name);
    if (at == nullptr) {
      return fail(Code::kNotFound, fmt::format("field \"{}\" does not exist", name));
    }
  }
  if (!fields.empty()) {
    out += fmt::format("FIELD: {} <{}>\n", fields.back(), explainer.type(*at));
    out += Explainer::enumeration(*at, "ENUM:\n    ", "\n    ", std::string::npos) + "\n";
  }
  const std::string text = explainer.description(*at);
  out += "DESCRIPTION:\n" + wrapped(text.empty() ? "<empty>" : text, kTextWidth, 4) + "\n";
  const std::string list = explainer.fields(*at, 1, recursive, {});
  if (!list.empty()) out += "FIELDS:\n" + list;
  return out + "\n";
}

}  // namespace skiff::cli
