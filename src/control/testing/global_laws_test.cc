#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "api/meta.h"
#include "control/testing/laws.h"

namespace skiff::control::testing {
namespace {

const api::Resource kSweptPods = {.version = "v1", .plural = "pods", .kind = "Pod"};

enum class Slip { kNone, kNeverRests, kForgets, kRemembers, kCarefree, kMeddles };

bool failed(const json::value& pod) {
  return json::get_string(pod, {"status", "phase"}) == "Failed";
}

client::Write change_of(const json::value& pod, client::Verb verb, json::value body) {
  return {.verb = verb,
          .resource = kSweptPods,
          .ns = std::string(api::ns(pod)),
          .name = std::string(api::name(pod)),
          .body = std::move(body),
          .uid = std::string(api::uid(pod)),
          .resource_version = std::string(api::resource_version(pod))};
}

client::Write mark(const json::value& pod, std::string value) {
  return change_of(pod, client::Verb::kMergePatch,
                   {{"metadata", {{"annotations", json::object{{"mark", json::string(value)}}}}}});
}

// Marks pods that have failed and removes them two seconds later.
class Sweeper {
 public:
  explicit Sweeper(Slip slip) : slip_(slip) {}

  void changed(const Object& before, const Object& after) {
    if (before != nullptr) pods_.erase(std::string(api::name(*before)));
    if (after == nullptr) return;
    const bool marked = !api::annotation(*after, "mark").empty();
    if (before != nullptr && marked) marked_here_.emplace(api::uid(*after));
    pods_[std::string(api::name(*after))] = after;
  }

  GlobalPlan plan(Time now) const {
    GlobalPlan out;
    for (const auto& [name, pod] : pods_) {
      if (auto write = next(*pod, now)) out.batches.push_back({.writes = {std::move(*write)}});
    }
    return out;
  }

 private:
  std::optional<client::Write> next(const json::value& pod, Time now) const {
    const std::string_view marked = api::annotation(pod, "mark");
    if (slip_ == Slip::kNeverRests) return mark(pod, std::string(marked) + "x");
    if (!failed(pod) || slip_ == Slip::kForgets) return std::nullopt;
    if (marked.empty()) {
      client::Write write = mark(pod, rfc3339(now));
      if (slip_ == Slip::kMeddles) write.resource.plural = "services";
      return write;
    }
    if (now < *parse_time(marked) + std::chrono::seconds(2)) return std::nullopt;
    if (slip_ == Slip::kRemembers && !marked_here_.contains(api::uid(pod))) return std::nullopt;
    client::Write write = change_of(pod, client::Verb::kDelete, json::object{});
    if (slip_ == Slip::kCarefree) write.resource_version.clear();
    return write;
  }

  const Slip slip_;
  std::map<std::string, Object> pods_ = {};
  std::set<std::string, std::less<>> marked_here_ = {};
};

void set_phase(client::Client& client, std::string_view pod, std::string_view phase) {
  (void)client.write({.verb = client::Verb::kMergePatch,
                      .resource = kSweptPods,
                      .ns = "ns",
                      .name = std::string(pod),
                      .subresource = "status",
                      .body = json::object{{"status", {{"phase", json::string(phase)}}}}});
}

// Six pods of which some fail; one that failed and is marked in an old observation runs again.
GlobalLawCase sweeping(Slip slip) {
  GlobalLawCase out;
  auto steps = std::make_shared<int>(0);
  out.make = [slip] {
    auto sweeper = std::make_shared<Sweeper>(slip);
    return GlobalController{
        .name = "sweeper",
        .watched = {kSweptPods},
        .changed = [sweeper](std::size_t, const Object& before,
                             const Object& after) { sweeper->changed(before, after); },
        .plan = [sweeper](Time now) { return sweeper->plan(now); }};
  };
  out.arrange = [steps](client::Client& client, Random&) {
    *steps = 0;
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(
          client.write({.resource = kSweptPods,
                        .ns = "ns",
                        .body = json::object{{"metadata", {{"name", fmt::format("p{}", i)}}}}}));
    }
  };
  out.step = [steps](client::Client& client, Time, Random& random) {
    const std::string pod = fmt::format("p{}", random.below(6));
    if (*steps < 20) set_phase(client, pod, random.chance(50) ? "Failed" : "Running");
    return ++*steps < 30;
  };
  out.wrong = [](client::Client& client) -> std::optional<std::string> {
    for (const Object& pod : client.list(kSweptPods, {}, {})->items) {
      if (failed(*pod) && !api::deleting(*pod)) return "a pod that failed is left";
    }
    return std::nullopt;
  };
  out.may_write = [](const client::Write& write) { return write.resource.plural == "pods"; };
  out.may_delete = [](client::Client&, const json::value& pod) {
    return failed(pod) || api::deleting(pod);
  };
  return out;
}

std::string first_slip(Slip slip) {
  const auto broken = check_laws(sweeping(slip));
  return broken.empty() ? "none" : broken.front();
}

TEST(GlobalLaws, each_is_noticed_when_it_is_broken) {
  const std::pair<Slip, std::string_view> expected[] = {
      {Slip::kNone, "none"},
      {Slip::kNeverRests, "idempotent: still writes"},
      {Slip::kForgets, "convergent: a pod that failed is left"},
      {Slip::kRemembers, "crash-safe: "},
      {Slip::kCarefree, "stale-safe: it deleted"},
      {Slip::kMeddles, "ownership: "},
  };
  for (const auto& [slip, sentence] : expected) {
    const std::string broken = first_slip(slip);
    EXPECT_NE(broken.find(sentence), std::string::npos) << broken << " instead of " << sentence;
  }
}

}  // namespace
}  // namespace skiff::control::testing
