// Nodes, pods and claims for the tests of this folder, in few words.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "scheduler/schedule.h"
#include "scheduler/snapshot.h"

namespace skiff::scheduler::testing {

inline json::value must_parse(std::string_view text) {
  Result<json::value> parsed = json::parse(text);
  SKIFF_CHECK(parsed.has_value(), parsed ? "" : parsed.error().message);
  return *std::move(parsed);
}

inline Object share(json::value value) {
  return std::make_shared<const json::value>(std::move(value));
}

// node("n1", R"("cpu":"2")")
inline json::value node(std::string_view name, std::string_view allocatable,
                        std::string_view spec = "", std::string_view status = "") {
  return must_parse(
      fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"host":"{}"}}}},"spec":{{{}}},)"
                  R"("status":{{"allocatable":{{{}}}{}}}}})",
                  name, name, spec, allocatable, status));
}

// pod("a", R"("cpu":"1")"): one container with these requests. `second` is when it was made.
inline json::value pod(std::string_view name, std::string_view requests, int second = 0,
                       std::string_view spec = "") {
  return must_parse(fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"ns","uid":"uid-{}","resourceVersion":"1",)"
      R"("creationTimestamp":"2026-01-01T00:{:02}:{:02}Z"}},)"
      R"("spec":{{"containers":[{{"resources":{{"requests":{{{}}}}}}}]{}}}}})",
      name, name, second / 60, second % 60, requests, spec));
}

inline json::value in_gang(json::value pod, std::string_view gang, std::string_view min) {
  json::make_object(pod, {"metadata", "annotations"}) =
      json::object{{kGangAnnotation, json::string(gang)}, {kGangMinAnnotation, json::string(min)}};
  return pod;
}

inline json::value bound(json::value pod, std::string_view node,
                         std::string_view restart = "Never") {
  json::set(pod, {"spec", "nodeName"}, json::string(node));
  json::set(pod, {"spec", "restartPolicy"}, json::string(restart));
  return pod;
}

// A pod that uses a claim.
inline json::value with_claim(json::value pod, std::string_view claim) {
  json::set(pod, {"spec", "volumes"},
            json::array{json::object{
                {"name", "v"}, {"persistentVolumeClaim", {{"claimName", json::string(claim)}}}}});
  return pod;
}

// Books and what would be decided from them.
struct Desk {
  Books books = {};
  Time now = *parse_time("2026-01-01T00:00:00Z");

  void node(const json::value& v) { books.node_changed(nullptr, share(v)); }
  void pod(const json::value& v) { books.pod_changed(nullptr, share(v)); }
  void gone(const json::value& v) { books.pod_changed(share(v), nullptr); }
  void claim(std::string_view text) { books.claim_changed(nullptr, share(must_parse(text))); }
  Decisions decide() const { return schedule(books.snapshot(), now); }
  // "a>n1 b>n1 " for what is placed, in order.
  std::string placed() const {
    std::string out;
    for (const Placement& gang : decide().gangs) {
      for (const auto& [bound, where] : gang.bindings) out += bound->key.name + ">" + where + " ";
    }
    return out;
  }
  std::string why(std::string_view name) const {
    for (const Waiting& waiting : decide().waiting) {
      if (waiting.pod->key.name == name) return waiting.message;
    }
    return "does not wait";
  }
  const Pod& waiting(const std::string& name) const {
    const auto found = books.snapshot().pending.find({"ns", name});
    SKIFF_CHECK(found != books.snapshot().pending.end(), "it does not wait");
    return *found->second;
  }
  // What a waiting pod asks for of a resource, in thousandths; -1: it does not ask.
  std::int64_t asks(const std::string& name, std::string_view resource) const {
    for (const auto& [number, milli] : waiting(name).requests) {
      if (books.snapshot().resources[number] == resource) return milli;
    }
    return -1;
  }
};

}  // namespace skiff::scheduler::testing
