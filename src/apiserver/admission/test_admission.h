// A server with objects that other kinds' files may not serve yet: rules read them from the store.
#pragma once

#include <string>
#include <string_view>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {

inline json::value text_to_json(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : json::value();
}

class AdmissionWorld : public World {
 public:
  // Into the store, past the API. `object` without its metadata's name and namespace.
  void put(std::string resource, std::string ns, std::string name, std::string_view object) {
    json::value value = text_to_json(object);
    json::set(value, {"metadata", "name"}, json::string(name));
    if (!ns.empty()) json::set(value, {"metadata", "namespace"}, json::string(ns));
    const auto done = store->commit(
        {{.key = {.resource = std::move(resource), .ns = std::move(ns), .name = std::move(name)},
          .value = std::move(value)}},
        store::Sync::kLazy);
    EXPECT_TRUE(done) << done.error().message;
    flush();
  }
  json::value get(std::string resource, std::string ns, std::string name) {
    const auto entry =
        store->get({.resource = std::move(resource), .ns = std::move(ns), .name = std::move(name)});
    return entry ? *entry->value() : json::value();
  }

  // A pod of namespace default with these members of its spec; the answer to its creation.
  std::pair<int, json::value> run(std::string_view name, std::string_view spec,
                                  std::string_view metadata = "") {
    return call("POST", pods(),
                R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + std::string(name) +
                    "\"" + std::string(metadata) + R"(},"spec":{)" + std::string(spec) + "}}");
  }
  std::string message(const std::pair<int, json::value>& answer) {
    return std::string(json::get_string(answer.second, {"message"}));
  }
  // The texts of the Warning headers.
  std::vector<std::string> warnings() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : last.headers) {
      if (name == "Warning") out.push_back(value);
    }
    return out;
  }
};

inline constexpr std::string_view kOneContainer = R"("containers":[{"name":"c","image":"x:y"}])";

inline std::string container_with(std::string_view resources) {
  return R"("containers":[{"name":"c","image":"x:y","resources":)" + std::string(resources) + "}]";
}

}  // namespace skiff::apiserver
