#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/base64.h"
#include "base/limits.h"

namespace skiff::yaml {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

std::unexpected<Error> bad(std::size_t line, std::string_view why) {
  if (line == 0) return fail(Code::kBadRequest, fmt::format("yaml: {}", why));
  return fail(Code::kBadRequest, fmt::format("yaml: line {}: {}", line, why));
}

// One event of libyaml, freed with its holder.
struct Event {
  yaml_event_t raw{};
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&raw); }
  std::size_t line() const { return raw.start_mark.line + 1; }
};

std::string_view text_of(const yaml_char_t* s) {
  return s == nullptr ? std::string_view() : reinterpret_cast<const char*>(s);
}

// How much a value adds where an alias repeats it.
struct Extent {
  std::size_t nodes = 1;
  std::size_t bytes = 0;  // of its texts and keys
  std::size_t depth = 1;

  void add(const Extent& inner) {
    nodes += inner.nodes;
    bytes += inner.bytes;
    depth = std::max(depth, inner.depth + 1);
  }
};

Extent measure(const json::value& v) {
  Extent out;
  if (const json::object* o = v.if_object()) {
    for (const auto& member : *o) {
      out.bytes += member.key().size();
      out.add(measure(member.value()));
    }
  } else if (const json::array* a = v.if_array()) {
    for (const json::value& item : *a) out.add(measure(item));
  } else if (const json::string* text = v.if_string()) {
    out.bytes = text->size();
  }
  return out;
}

class Reader {
 public:
  // Without `doubled`, a key given twice is an error.
  explicit Reader(std::string_view text, std::vector<std::string>* doubled = nullptr)
      : doubled_(doubled) {
    yaml_parser_initialize(&parser_);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { yaml_parser_delete(&parser_); }

  Result<std::vector<json::value>> documents() {
    std::vector<json::value> out;
    while (true) {
      Event event;
      SKIFF_TRY(next(event));
      if (event.raw.type == YAML_STREAM_END_EVENT) return out;
      if (event.raw.type != YAML_DOCUMENT_START_EVENT) continue;
      // A request is read as the real server reads it, which knows YAML 1.1 alone.
      const auto* version = event.raw.data.document_start.version_directive;
      if (doubled_ != nullptr && version != nullptr && version->minor != 1) {
        return bad(0, "found incompatible YAML document");
      }
      anchors_.clear();
      Event root;
      SKIFF_TRY(next(root));
      SKIFF_ASSIGN(json::value document, node(root, 0));
      if (!document.is_null()) out.push_back(std::move(document));
    }
  }

 private:
  struct Anchor {
    json::value value;
    Extent extent;
  };

  Result<void> next(Event& event) {
    if (yaml_parser_parse(&parser_, &event.raw) == 1) return {};
    const char* problem = parser_.problem == nullptr ? "not readable" : parser_.problem;
    // Lines as go-yaml counts them: from 0, which is not told, but for the scanner's from 1.
    std::size_t line = parser_.problem_mark.line;
    if (line == 0) {
      line = parser_.context_mark.line;
    } else if (parser_.error == YAML_SCANNER_ERROR) {
      ++line;
    }
    return bad(line, problem);
  }

  // The anchor of a list or map that is being read. Something inside of it may take the name: from
  // its end on the name means that, and is no longer open.
  class Open {
   public:
    Open(std::set<std::string, std::less<>>& all, const yaml_char_t* anchor)
        : all_(all), mine_(text_of(anchor)) {
      if (!mine_.empty()) all_.insert(mine_);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() { all_.erase(mine_); }

    bool still() const { return all_.contains(mine_); }

   private:
    std::set<std::string, std::less<>>& all_;
    const std::string mine_;  // empty: none
  };

  Result<json::value> node(const Event& event, std::size_t depth) {
    if (depth > limits::kJsonDepth) return bad(event.line(), "nested too deeply");
    if (++nodes_ > limits::kYamlNodes) return bad(event.line(), "the document is too large");
    switch (event.raw.type) {
      case YAML_ALIAS_EVENT:
        return alias(event, depth);
      case YAML_SCALAR_EVENT:
        return scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return sequence(event, depth);
      case YAML_MAPPING_START_EVENT:
        return mapping(event, depth);
      default:
        return bad(event.line(), "a value is missing");
    }
  }

  Result<json::value> alias(const Event& event, std::size_t depth) {
    const std::string_view name = text_of(event.raw.data.alias.anchor);
    const auto found = anchors_.find(name);
    if (open_.contains(name)) return bad(0, fmt::format("anchor '{}' value contains itself", name));
    if (found == anchors_.end()) return bad(0, fmt::format("unknown anchor '{}' referenced", name));
    const Extent& extent = found->second.extent;
    if (depth + extent.depth > limits::kJsonDepth) return bad(event.line(), "nested too deeply");
    SKIFF_TRY(count_copy(extent));
    return found->second.value;
  }

  // Called before anything is copied. What the text holds itself is as large as the text; what is
  // copied has no other bound, and counts over all documents of a stream.
  Result<void> count_copy(const Extent& extent) {
    nodes_ += extent.nodes;
    copied_bytes_ += extent.bytes;
    if (nodes_ <= limits::kYamlNodes && copied_bytes_ <= limits::kYamlCopiedBytes) return {};
    return bad(0,
               fmt::format("document contains excessive aliasing: anchors, aliases and merges "
                           "may copy at most {} bytes, and the whole may have at most {} values; "
                           "write it with fewer aliases, or as several documents",
                           limits::kYamlCopiedBytes, limits::kYamlNodes));
  }

  // Keeping the value is itself a copy, so it counts.
  Result<void> remember(const yaml_char_t* anchor, const json::value& value) {
    if (anchor == nullptr) return {};
    const Extent extent = measure(value);
    SKIFF_TRY(count_copy(extent));
    anchors_[std::string(text_of(anchor))] = {value, extent};
    return {};
  }

  Result<json::value> scalar(const Event& event) {
    const auto& s = event.raw.data.scalar;
    const std::string_view text(reinterpret_cast<const char*>(s.value), s.length);
    std::string_view tag = text_of(s.tag);
    json::value out;
    if (tag.starts_with(kTagPrefix)) tag.remove_prefix(kTagPrefix.size());
    if (tag == "str" || tag == "timestamp") {
      out = json::string(text);
    } else if (tag == "binary") {
      const auto bytes = base64::decode(text);
      if (!bytes) return bad(event.line(), "!!binary value contains invalid base64 data");
      out = json::string(*bytes);
    } else if (s.style == YAML_PLAIN_SCALAR_STYLE || tag == "int" || tag == "float" ||
               tag == "bool" || tag == "null") {
      out = resolve_plain(text);
    } else {
      out = json::string(text);
    }
    open_.erase(std::string(text_of(s.anchor)));
    SKIFF_TRY(remember(s.anchor, out));
    return out;
  }

  Result<json::value> sequence(const Event& start, std::size_t depth) {
    json::array out;
    const Open open(open_, start.raw.data.sequence_start.anchor);
    while (true) {
      Event event;
      SKIFF_TRY(next(event));
      if (event.raw.type == YAML_SEQUENCE_END_EVENT) break;
      SKIFF_ASSIGN(json::value item, node(event, depth + 1));
      out.push_back(std::move(item));
    }
    json::value result(std::move(out));
    if (open.still()) SKIFF_TRY(remember(start.raw.data.sequence_start.anchor, result));
    return result;
  }

  Result<json::value> mapping(const Event& start, std::size_t depth) {
    json::object out;
    std::vector<json::value> merges;
    const Open open(open_, start.raw.data.mapping_start.anchor);
    while (true) {
      Event event;
      SKIFF_TRY(next(event));
      if (event.raw.type == YAML_MAPPING_END_EVENT) break;
      const bool merge = is_merge(event);
      SKIFF_ASSIGN(const std::string key, key_of(event));
      Event value_event;
      SKIFF_TRY(next(value_event));
      SKIFF_ASSIGN(json::value value, node(value_event, depth + 1));
      if (merge) {
        SKIFF_TRY(collect(std::move(value), value_event.line(), merges));
      } else if (!out.contains(key)) {
        out.emplace(key, std::move(value));
      } else if (doubled_ != nullptr) {
        if (doubled_->size() < limits::kNamedFields) {
          doubled_->push_back(
              fmt::format("line {}: key \"{}\" already set in map", event.line(), key));
        }
        out[key] = std::move(value);
      } else {
        return bad(event.line(), fmt::format("key \"{}\" is already set in this map", key));
      }
    }
    for (const json::value& merged : merges) {
      for (const auto& [key, value] : merged.get_object()) {
        Extent extent = measure(value);
        extent.bytes += key.size();
        SKIFF_TRY(count_copy(extent));
        out.emplace(key, value);
      }
    }
    json::value result(std::move(out));
    if (open.still()) SKIFF_TRY(remember(start.raw.data.mapping_start.anchor, result));
    return result;
  }

  static bool is_merge(const Event& event) {
    return event.raw.type == YAML_SCALAR_EVENT &&
           event.raw.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           text_of(event.raw.data.scalar.value) == "<<";
  }

  // The value of `<<`: a map or a list of maps, earlier ones first.
  static Result<void> collect(json::value value, std::size_t line, std::vector<json::value>& out) {
    if (value.is_object()) {
      out.push_back(std::move(value));
      return {};
    }
    if (!value.is_array()) return bad(line, "'<<' needs a map or a list of maps");
    for (json::value& item : value.get_array()) {
      if (!item.is_object()) return bad(line, "'<<' needs a map or a list of maps");
      out.push_back(std::move(item));
    }
    return {};
  }

  Result<std::string> key_of(const Event& event) {
    // Before it is read: keys within keys would be a way around the limit on depth.
    if (event.raw.type != YAML_SCALAR_EVENT && event.raw.type != YAML_ALIAS_EVENT) {
      return bad(event.line(), "a key must be a scalar");
    }
    SKIFF_ASSIGN(const json::value key, node(event, limits::kJsonDepth - 1));
    if (key.is_string()) return std::string(json::view(key.get_string()));
    if (key.is_object() || key.is_array()) return bad(event.line(), "a key must be a scalar");
    return json::serialize(key);
  }

  yaml_parser_t parser_{};
  std::vector<std::string>* doubled_;
  std::map<std::string, Anchor, std::less<>> anchors_;
  std::set<std::string, std::less<>> open_;
  std::size_t nodes_ = 0;
  std::size_t copied_bytes_ = 0;
};

}  // namespace

Result<std::vector<json::value>> parse_all(std::string_view text) {
  return Reader(text).documents();
}

namespace {

Result<json::value> only(std::vector<json::value> documents) {
  if (documents.empty()) return json::value(nullptr);
  if (documents.size() > 1) {
    return fail(Code::kBadRequest,
                fmt::format("expected one YAML document, found {}", documents.size()));
  }
  return std::move(documents.front());
}

}  // namespace

Result<json::value> parse(std::string_view text) {
  SKIFF_ASSIGN(std::vector<json::value> documents, parse_all(text));
  return only(std::move(documents));
}

Result<json::value> parse_lenient(std::string_view text, std::vector<std::string>& doubled) {
  SKIFF_ASSIGN(std::vector<json::value> documents, Reader(text, &doubled).documents());
  return documents.empty() ? json::value(nullptr) : std::move(documents.front());
}

}  // namespace skiff::yaml
