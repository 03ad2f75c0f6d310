#include "schema/prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::schema {
namespace {

const Schema& metadata_place() {
  static const Schema kPlace{.ref = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"};
  return kPlace;
}

// Removes the members for which `keep` gives false. All at once: each erasure of its own would move
// every member behind it.
template <class Keep>
void keep_members(json::object& object, Keep keep) {
  std::vector<bool> kept;
  bool all = true;
  for (auto& member : object) {
    kept.push_back(keep(member.key(), member.value()));
    all = all && kept.back();
  }
  if (all) return;
  json::object next;
  std::size_t i = 0;
  for (auto& member : object) {
    if (kept[i++]) next.emplace(member.key(), std::move(member.value()));
  }
  object = std::move(next);
}

class Pruner {
 public:
  explicit Pruner(const Registry& registry) : registry_(registry) {}

  void run(const Schema& place, json::value& v, const std::string& path, bool resource,
           std::size_t depth) {
    if (depth > limits::kJsonDepth) return;
    SchemaPtr holder;
    const Schema& s = registry_.resolve(place, holder);
    resource = resource || s.embedded_resource;
    if (json::array* a = v.if_array()) {
      if (!s.items) return;
      for (std::size_t i = 0; i < a->size(); ++i) {
        run(*s.items, (*a)[i], child(path, i), false, depth + 1);
      }
      return;
    }
    json::object* o = v.if_object();
    if (o == nullptr) return;
    keep_members(*o, [&](std::string_view key, json::value& member) {
      const Schema* p = place_of(s, key, resource);
      if (p != nullptr) {
        run(*p, member, child(path, key), false, depth + 1);
      } else if (!s.preserve_unknown && !(resource && (key == "apiVersion" || key == "kind"))) {
        if (removed_.size() < limits::kNamedFields) removed_.push_back(child(path, key));
        return false;
      }
      return true;
    });
  }

  std::vector<std::string> take() { return std::move(removed_); }

 private:
  static const Schema* place_of(const Schema& s, std::string_view key, bool resource) {
    // A CRD can at most restrict the name; what metadata holds is not its to say.
    if (resource && key == "metadata") return &metadata_place();
    if (const Schema* p = s.property(key)) return p;
    return s.additional.get();
  }

  const Registry& registry_;
  std::vector<std::string> removed_;
};

void drop_nulls(const Registry& registry, const Schema& place, json::value& v, std::size_t depth) {
  if (depth > limits::kJsonDepth) return;
  SchemaPtr holder;
  const Schema& s = registry.resolve(place, holder);
  if (s.builtin) return;
  if (json::array* a = v.if_array()) {
    if (!s.items) return;
    for (json::value& item : *a) drop_nulls(registry, *s.items, item, depth + 1);
    return;
  }
  json::object* o = v.if_object();
  if (o == nullptr) return;
  keep_members(*o, [&](std::string_view key, json::value& member) {
    const Schema* p = s.property(key);
    if (p == nullptr) p = s.additional.get();
    if (p == nullptr) return true;
    if (!member.is_null()) {
      drop_nulls(registry, *p, member, depth + 1);
      return true;
    }
    return p->nullable || p->fallback;
  });
}

// Walks JSON text and keeps, per open object, the keys seen. Tells `seen` of each key its path, as
// a function because few want it, and whether it was there before; what stands under a key for
// which that gives false is left out.
template <class Seen>
class KeyScan {
 public:
  KeyScan(std::string_view text, Seen seen) : text_(text), seen_(std::move(seen)) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '{' || c == '[') {
        const bool left_out = !levels_.empty() && levels_.back().left_out;
        levels_.push_back({.object = c == '{', .key_next = c == '{', .left_out = left_out});
      } else if ((c == '}' || c == ']') && !levels_.empty()) {
        levels_.pop_back();
      } else if (c == ',' && !levels_.empty()) {
        levels_.back().key_next = levels_.back().object;
        ++levels_.back().index;
      } else if (c == '"') {
        take_string();
        continue;
      }
      ++at_;
    }
  }

 private:
  struct Level {
    bool object = false;
    bool key_next = false;
    bool left_out = false;  // what stands under `key`
    std::size_t index = 0;
    std::string key = {};
    std::set<std::string> seen = {};
  };

  void take_string() {
    const std::size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
    if (levels_.empty() || !levels_.back().key_next) return;
    Level& level = levels_.back();
    level.key_next = false;
    const Result<json::value> key = json::parse(text_.substr(start, at_ - start));
    if (!key || !key->is_string()) return;
    level.key = json::view(key->get_string());
    if (levels_.size() > 1 && levels_[levels_.size() - 2].left_out) return;
    const bool again = !level.seen.insert(level.key).second;
    level.left_out = !seen_([this] { return path(); }, again);
  }

  std::string path() const {
    std::string out;
    for (const Level& level : levels_) {
      if (level.object) {
        append_child(out, std::string_view(level.key));
      } else {
        append_child(out, level.index);
      }
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Level> levels_;
  Seen seen_;
};

std::string unknown_field(std::string_view path) {
  return fmt::format("unknown field \"{}\"", path);
}
std::string duplicate_field(std::string_view path) {
  return fmt::format("duplicate field \"{}\"", path);
}

}  // namespace

std::vector<std::string> prune(const Registry& registry, const Schema& schema,
                               json::value& object) {
  Pruner pruner(registry);
  pruner.run(schema, object, {}, true, 0);
  return pruner.take();
}

void prune_nulls(const Registry& registry, const Schema& schema, json::value& object) {
  drop_nulls(registry, schema, object, 0);
}

std::vector<std::string> duplicate_fields(std::string_view json_text) {
  std::vector<std::string> found;
  KeyScan(json_text, [&](const auto& path, bool again) {
    if (again && found.size() < limits::kNamedFields) found.push_back(duplicate_field(path()));
    return true;
  }).run();
  return found;
}

std::vector<std::string> field_warnings(std::vector<std::string> duplicated,
                                        const std::vector<std::string>& unknown) {
  for (const std::string& path : unknown) duplicated.push_back(unknown_field(path));
  return duplicated;
}

std::vector<std::string> field_warnings(std::string_view json_text,
                                        const std::vector<std::string>& unknown) {
  const std::set<std::string> strangers(unknown.begin(), unknown.end());
  std::vector<std::string> out;
  KeyScan(json_text, [&](const auto& path, bool again) {
    if (out.size() >= limits::kNamedFields) return true;
    const std::string at = path();
    const bool known = !strangers.contains(at);
    std::string sentence = known ? duplicate_field(at) : unknown_field(at);
    const bool wrong = !known || again;
    if (wrong && std::ranges::count(out, sentence) == 0) out.push_back(std::move(sentence));
    return known;
  }).run();
  return out;
}

Error strict_error(std::string_view kind, std::string_view version,
                   const std::vector<std::string>& warnings) {
  return {.code = Code::kBadRequest,
          .message = fmt::format(
              "{0} in version \"{1}\" cannot be handled as a {0}: strict decoding error: {2}", kind,
              version, join(warnings, ", "))};
}

}  // namespace skiff::schema
