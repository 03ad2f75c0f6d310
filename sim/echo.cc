#include "sim/echo.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "api/meta.h"
#include "scheduler/snapshot.h"
#include "sim/resources.h"

namespace skiff::sim {
namespace {

const api::Resource kEchoes = {
    .group = "sim.skiff.dev", .version = "v1", .plural = "echoes", .kind = "Echo"};
constexpr std::string_view kIndex = "sim.skiff.dev/index";

client::Write removal_of(const json::value& pod) {
  return {.verb = client::Verb::kDelete,
          .resource = kPods,
          .ns = std::string(api::ns(pod)),
          .name = std::string(api::name(pod)),
          .uid = std::string(api::uid(pod))};
}

// Of the gang, those run at the same time that are not done.
std::string gang_min(std::int64_t replicas, std::int64_t succeeded) {
  return std::to_string(replicas - succeeded);
}

client::Write told(const json::value& pod, std::string_view min) {
  client::Write write = removal_of(pod);
  write.verb = client::Verb::kMergePatch;
  write.body = json::object{
      {"metadata", {{"annotations", {{scheduler::kGangMinAnnotation, json::string(min)}}}}}};
  return write;
}

client::Write creation_of(const json::value& root, std::int64_t index, std::string name,
                          std::string_view min) {
  client::Write write{.resource = kPods, .ns = std::string(api::ns(root))};
  json::object meta{
      {"name", name}, {"namespace", write.ns}, {"labels", {{kIndex, std::to_string(index)}}}};
  meta["ownerReferences"] = json::array{api::owner_reference(root)};
  if (json::get_bool(root, {"spec", "gang"}).value_or(false)) {
    meta["annotations"] = json::object{{scheduler::kGangAnnotation, json::string(api::name(root))},
                                       {scheduler::kGangMinAnnotation, json::string(min)}};
  }
  write.body = json::object{{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"metadata", std::move(meta)},
                            {"spec",
                             {{"restartPolicy", "Never"},
                              {"containers",
                               {json::object{{"name", "main"},
                                             {"image", "echo"},
                                             {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}};
  return write;
}

control::Plan plan_echo(const control::Observed& observed, Mistake mistake) {
  control::Plan plan;
  const json::value& root = *observed.root;
  if (api::deleting(root)) return plan;
  const auto replicas = json::get_int(root, {"spec", "replicas"}).value_or(0);
  const bool done = json::get_string(root, {"status", "phase"}) == "Done";
  if (done && mistake == Mistake::kReopens) plan.status = json::object{{"phase", "Running"}};
  if (done) return plan;
  std::int64_t succeeded = 0;
  std::map<std::string_view, const json::value*> by_index;
  for (const Object& pod : observed.owned[0]) {
    by_index[api::label(*pod, kIndex)] = pod.get();
    const std::string_view phase = json::get_string(*pod, {"status", "phase"});
    succeeded += phase == "Succeeded" ? 1 : 0;
    if (phase == "Failed" && !api::deleting(*pod)) plan.writes.push_back(removal_of(*pod));
  }
  // Waiting pods were told a number when they were made.
  const std::string min = gang_min(replicas, succeeded);
  for (const Object& pod : observed.owned[0]) {
    const std::string_view known = api::annotation(*pod, scheduler::kGangMinAnnotation);
    const bool waits = json::get_string(*pod, {"spec", "nodeName"}).empty();
    if (!known.empty() && known != min && waits && !api::deleting(*pod)) {
      plan.writes.push_back(told(*pod, min));
    }
  }
  const bool gave_up = mistake == Mistake::kStopsAfterCrash && !observed.owned[0].empty();
  for (std::int64_t i = 0; i < replicas && !gave_up; ++i) {
    if (by_index.contains(std::to_string(i))) continue;
    const std::string name = fmt::format("{}-{}", api::name(root), i);
    plan.writes.push_back(creation_of(root, i, name, min));
    if (mistake == Mistake::kTwoInOnePlace) {
      plan.writes.push_back(creation_of(root, i, name + "-again", min));
    }
  }
  const std::string_view phase = succeeded == replicas ? "Done" : "Running";
  if (json::get_string(root, {"status", "phase"}) != phase ||
      json::get_int(root, {"status", "succeeded"}) != succeeded) {
    plan.status = json::object{{"phase", json::string(phase)}, {"succeeded", succeeded}};
    plan.notes.push_back({.reason = "Progress", .message = fmt::format("{} done", succeeded)});
  }
  if (mistake == Mistake::kNeverContent) {
    const auto looks = json::get_int(root, {"status", "looks"}).value_or(0);
    plan.status = json::object{
        {"phase", json::string(phase)}, {"succeeded", succeeded}, {"looks", looks + 1}};
  }
  return plan;
}

class Echo : public Workload {
 public:
  explicit Echo(Mistake mistake) : mistake_(mistake) {}

  std::string_view name() const override { return "echo"; }

  std::vector<api::Kind> kinds() const override {
    return {{.resource = kEchoes, .singular = "echo", .has_status = true}};
  }

  std::vector<control::Controller> controllers() const override {
    return {{.name = "echo-controller",
             .root = kEchoes,
             .owned = {kPods},
             .plan = [mistake = mistake_](const control::Observed& observed, Time) {
               return plan_echo(observed, mistake);
             }}};
  }

  void people(client::Client& client, Time, Random& random) override {
    if (made_ < 6 && random.chance(70)) {
      client::Write write{.resource = kEchoes, .ns = "default"};
      write.body = json::object{
          {"apiVersion", "sim.skiff.dev/v1"},
          {"kind", "Echo"},
          {"metadata", {{"name", fmt::format("echo{}", made_++)}, {"namespace", "default"}}},
          {"spec",
           {{"replicas", static_cast<std::int64_t>(1 + random.below(2))},
            {"gang", random.chance(50)}}}};
      (void)client.write(write);
    } else if (made_ > 0 && random.chance(10)) {
      (void)client.write({.verb = client::Verb::kDelete,
                          .resource = kEchoes,
                          .ns = "default",
                          .name = fmt::format("echo{}", random.below(made_))});
    }
  }

  PodScript script(const json::value&, unsigned, bool calm, Random& random) override {
    PodScript out{.start_after = std::chrono::milliseconds(10 + random.below(3000)),
                  .run_for = std::chrono::milliseconds(100 + random.below(60'000))};
    if (calm) return out;
    switch (random.below(8)) {
      case 0:
        out.exit_code = 1;
        break;
      case 1:
        out.exit_code = 137;
        out.oom = true;
        break;
      case 2:
        out.run_for = std::chrono::hours(1);  // as good as a hang
        break;
      default:
        break;
    }
    return out;
  }

  bool finished(const json::value& root) const override {
    return json::get_string(root, {"status", "phase"}) == "Done";
  }

  std::string slot(const json::value& child) const override {
    return std::string(api::label(child, kIndex));
  }

 private:
  const Mistake mistake_;
  std::uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_echo() { return make_echo(Mistake::kNone); }
std::unique_ptr<Workload> make_echo(Mistake mistake) { return std::make_unique<Echo>(mistake); }

}  // namespace skiff::sim
