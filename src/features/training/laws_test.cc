// The laws of controllers (control/testing/laws.h), held against random jobs of every kind.
#include "control/testing/laws.h"

#include <gtest/gtest.h>

#include <memory>

#include "features/training/engine/plan.h"
#include "features/training/kinds/kinds.h"
#include "features/training/testing/checks.h"
#include "features/training/testing/random_job.h"

namespace skiff::training {
namespace {

using control::testing::LawCase;

constexpr std::string_view kNamespace = "team";

void must_write(client::Client& client, const client::Write& write) {
  const Result<json::value> result = client.write(write);
  ASSERT_TRUE(result.has_value()) << result.error().message;
}

void patch(client::Client& client, const api::Resource& resource, std::string_view name,
           std::string_view subresource, json::value body) {
  must_write(client, {.verb = client::Verb::kMergePatch,
                      .resource = resource,
                      .ns = std::string(kNamespace),
                      .name = std::string(name),
                      .subresource = std::string(subresource),
                      .body = std::move(body)});
}

std::vector<Object> all(client::Client& client, const api::Resource& resource) {
  return client.list(resource, {}, {})->items;
}

json::value pod_status(const JobKind& kind, std::string_view phase, std::int64_t code) {
  json::value pod = testing::replica_pod("x", 0, phase);
  if (phase == "Running") {
    json::set(pod, {"status", "conditions"},
              json::array{json::object{{"type", "Ready"}, {"status", "True"}}});
  } else {
    testing::set_exit_code(pod, kind.container, code);
    json::set(pod, {"status", "conditions"},
              json::array{json::object{{"type", "Ready"}, {"status", "False"}}});
  }
  return {{"status", pod.at("status")}};
}

// One pod moves on: it starts, or it ends, now and then with a failure.
bool move_a_pod(const JobKind& kind, client::Client& client, Random& random) {
  for (const Object& pod : all(client, pod_resource())) {
    if (api::controller_of(*pod) == nullptr || api::deleting(*pod)) continue;
    const std::string_view phase = json::get_string(*pod, {"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed") continue;
    if (phase == "Running") {
      const bool fails = random.chance(25);
      const std::int64_t code = !fails ? 0 : random.chance(50) ? 1 : 137;
      patch(client, pod_resource(), api::name(*pod), "status",
            pod_status(kind, fails ? "Failed" : "Succeeded", code));
    } else {
      patch(client, pod_resource(), api::name(*pod), "status", pod_status(kind, "Running", 0));
    }
    return true;
  }
  return false;
}

// Somebody takes one of the job's companions away, or writes nonsense into it.
void meddle_with_companions(const JobKind& kind, client::Client& client, Random& random) {
  if (kind.companion_kinds.empty()) return;
  const api::Resource& resource = kind.companion_kinds[random.below(kind.companion_kinds.size())];
  for (const Object& object : all(client, resource)) {
    if (api::controller_of(*object) == nullptr) continue;
    const bool removes = random.chance(50);
    must_write(client, {.verb = removes ? client::Verb::kDelete : client::Verb::kMergePatch,
                        .resource = resource,
                        .ns = std::string(kNamespace),
                        .name = std::string(api::name(*object)),
                        .body = removes ? json::value(json::object{})
                                        : json::value{{"data", {{"hostfile", "nonsense"}}},
                                                      {"rules", json::array{}}}});
    return;
  }
}

// The companions of a job that runs are there, and what somebody wrote into them is not.
testing::Complaint spoilt_companion(const JobKind& kind, client::Client& client,
                                    const json::value& job) {
  if (!api::condition_true(job, "Running")) return {};
  for (const api::Resource& resource : kind.companion_kinds) {
    int owned = 0;
    for (const Object& object : all(client, resource)) {
      if (!api::controlled_by(*object, api::uid(job))) continue;
      ++owned;
      // Only of a config map: this server keeps what a role cannot have, and nobody asks for it.
      if (resource.plural == "configmaps" &&
          json::get_string(*object, {"data", "hostfile"}) == "nonsense") {
        return "a config map was not mended";
      }
    }
    if (owned != 1) return "a running job has " + std::to_string(owned) + " " + resource.plural;
  }
  return {};
}

// A person deletes a pod, suspends the job, or changes the number of workers.
void meddle(const JobKind& kind, client::Client& client, const json::value& job, Random& random) {
  const std::vector<Object> pods = all(client, pod_resource());
  switch (random.below(3)) {
    case 0: {
      const json::value& pod = *pods[random.below(pods.size())];
      if (api::controller_of(pod) == nullptr) return;
      must_write(client, {.verb = client::Verb::kDelete,
                          .resource = pod_resource(),
                          .ns = std::string(kNamespace),
                          .name = std::string(api::name(pod)),
                          .body = json::object{}});
      return;
    }
    case 1:
      patch(client, kind.resource, api::name(job), "",
            {{"spec", {{"runPolicy", json::object{{"suspend", true}}}}}});
      return;
    default:
      patch(client, kind.resource, api::name(job), "",
            {{"spec",
              {{kind.replicas_field,
                {{"Worker", json::object{{"replicas", testing::between(random, 1, 3)}}}}}}}});
  }
}

bool step(const JobKind& kind, client::Client& client, Random& random) {
  const std::vector<Object> jobs = all(client, kind.resource);
  if (jobs.empty()) return false;
  const json::value& job = *jobs.front();
  if (!testing::job_finished(job)) {
    if (json::get_bool(job, {"spec", "runPolicy", "suspend"}).value_or(false)) {
      patch(client, kind.resource, api::name(job), "",
            {{"spec", {{"runPolicy", json::object{{"suspend", false}}}}}});
      return true;
    }
    if (testing::Complaint spoilt = spoilt_companion(kind, client, job)) {
      ADD_FAILURE() << *spoilt;
    }
    if (random.chance(6)) {
      meddle(kind, client, job, random);
      return true;
    }
    if (!kind.companion_kinds.empty() && random.chance(6)) {
      meddle_with_companions(kind, client, random);
      return true;
    }
  }
  return move_a_pod(kind, client, random);
}

// A limit in time is kept to the second: one more passes before the world is looked at again, and
// one is lost where times are written down.
testing::Complaint kept_too_long(const json::value& job) {
  const auto deadline = json::get_int(job, {"spec", "runPolicy", "activeDeadlineSeconds"});
  const auto started = parse_time(json::get_string(job, {"status", "startTime"}));
  const auto ended = parse_time(json::get_string(job, {"status", "completionTime"}));
  if (!ended) return "a finished job does not say when it ended";
  if (deadline && started && *ended > *started + std::chrono::seconds(*deadline + 2)) {
    return "the job ran on past its deadline";
  }
  if (json::get_int(job, {"spec", "runPolicy", "ttlSecondsAfterFinished"})) {
    return "the job is still there although its time is over";
  }
  return {};
}

testing::Complaint wrong_end(const JobKind& kind, client::Client& client) {
  const std::vector<Object> pods = all(client, pod_resource());
  bool stranger = false;
  for (const Object& pod : pods) stranger = stranger || api::name(*pod) == "stranger";
  if (!stranger) return "the pod of somebody else is gone";
  for (const Object& job : all(client, kind.resource)) {
    if (!testing::job_finished(*job)) return "the job has not come to its end";
    if (testing::Complaint complaint = kept_too_long(*job)) return complaint;
    const std::string_view policy = json::get_string(*job, {"spec", "runPolicy", "cleanPodPolicy"});
    for (const Object& pod : pods) {
      if (!api::controlled_by(*pod, api::uid(*job))) continue;
      const std::string_view phase = json::get_string(*pod, {"status", "phase"});
      const bool ended = phase == "Succeeded" || phase == "Failed" ||
                         json::get_int(*pod, {"spec", "activeDeadlineSeconds"}) == 1;
      if (ended && api::label(*pod, kRoleLabel) == lower(kind.kept_role)) continue;
      if (policy == "All") return "a pod is left although all should be gone";
      if (policy == "Running" && phase == "Running") return "a pod runs after the end";
    }
  }
  return {};
}

// What a job has written down only grows: a plan from an old observation must not take it back.
struct Memory {
  std::int64_t restarts = 0;
  bool finished = false;

  testing::Complaint look(const json::value& job) {
    const std::int64_t now = json::get_int(job, {"status", "restarts"}).value_or(0);
    if (now < restarts) return "the job has forgotten restarts";
    if (finished && !testing::job_finished(job)) return "the job was finished and is not any more";
    restarts = now;
    finished = testing::job_finished(job);
    return {};
  }
};

LawCase make_case(const JobKind& kind) {
  LawCase out;
  const auto memory = std::make_shared<Memory>();
  out.controller = make_controller(kind);
  out.arrange = [&kind, memory](client::Client& client, Random& random) {
    *memory = {};
    json::value job = testing::random_job(kind, "mnist", random);
    if (random.chance(30)) {
      json::set(job, {"spec", "runPolicy", "activeDeadlineSeconds"},
                testing::between(random, 1, 20));
    }
    if (random.chance(30)) {
      json::set(job, {"spec", "runPolicy", "ttlSecondsAfterFinished"},
                testing::between(random, 0, 60));
    }
    must_write(client,
               {.resource = kind.resource, .ns = std::string(kNamespace), .body = std::move(job)});
    // Looks like a worker and belongs to nobody.
    json::value stranger = testing::replica_pod("worker", 0, "Running");
    json::set(stranger, {"metadata", "name"}, "stranger");
    stranger.at("metadata").as_object().erase("uid");
    must_write(
        client,
        {.resource = pod_resource(), .ns = std::string(kNamespace), .body = std::move(stranger)});
  };
  out.step = [&kind](client::Client& client, Time, Random& random) {
    return step(kind, client, random);
  };
  out.wrong = [&kind](client::Client& client) { return wrong_end(kind, client); };
  out.never = [&kind, memory](client::Client& client) -> std::optional<std::string> {
    const std::vector<Object> pods = all(client, pod_resource());
    for (const Object& job : all(client, kind.resource)) {
      if (testing::Complaint complaint = testing::any_complaint(*job, pods)) return complaint;
      if (testing::Complaint complaint = memory->look(*job)) return complaint;
    }
    return {};
  };
  out.cuts_max = 20;
  return out;
}

void hold(const JobKind& kind) {
  for (const std::string& sentence : control::testing::check_laws(make_case(kind), 20)) {
    ADD_FAILURE() << sentence;
  }
}

class Laws : public ::testing::TestWithParam<const JobKind*> {};

TEST_P(Laws, HoldFor) { hold(*GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, Laws, ::testing::ValuesIn(job_kinds()),
                         [](const auto& kind) { return kind.param->resource.kind; });

}  // namespace
}  // namespace skiff::training
