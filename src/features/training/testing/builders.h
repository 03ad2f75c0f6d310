// Jobs and pods for tests, in few words.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/check.h"
#include "base/json.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/job_kind.h"
#include "features/training/engine/labels.h"
#include "features/training/kinds/mpi/mpi.h"
#include "features/training/kinds/pytorch/pytorch.h"
#include "features/training/kinds/tensorflow/tensorflow.h"

namespace skiff::training::testing {

inline json::value must_parse(std::string_view text) {
  Result<json::value> parsed = json::parse(text);
  SKIFF_CHECK(parsed.has_value(), parsed ? "" : parsed.error().message);
  return *std::move(parsed);
}

inline Object share(json::value value) {
  return std::make_shared<const json::value>(std::move(value));
}

// A job that validation admits, made wrong or special by the calls that follow.
class JobBuilder {
 public:
  explicit JobBuilder(const JobKind& kind, std::string_view name = "mnist") : kind_(kind) {
    root_ = {{"apiVersion", kind.resource.api_version()},
             {"kind", kind.resource.kind},
             {"metadata",
              {{"name", json::string(name)},
               {"namespace", "team"},
               {"uid", fmt::format("uid-{}", name)},
               {"resourceVersion", "1"},
               {"creationTimestamp", "2026-11-15T12:00:00Z"}}},
             {"spec", json::object{}}};
  }

  JobBuilder& role(std::string_view name, std::int64_t replicas, std::string_view restart = {}) {
    json::value spec = {{"replicas", replicas},
                        {"template",
                         {{"spec",
                           {{"containers", json::array{json::object{{"name", kind_.container},
                                                                    {"image", "train:1"}}}}}}}}};
    if (!restart.empty()) json::set(spec, {"restartPolicy"}, json::string(restart));
    json::set(root_, {"spec", kind_.replicas_field, name}, std::move(spec));
    return *this;
  }
  JobBuilder& run(std::string_view key, json::value value) {
    json::set(root_, {"spec", "runPolicy", key}, std::move(value));
    return *this;
  }
  JobBuilder& spec(std::string_view key, json::value value) {
    json::set(root_, {"spec", key}, std::move(value));
    return *this;
  }
  // Any field of a role: role_field("Worker", {"template", "metadata"}, ...).
  JobBuilder& role_field(std::string_view role, std::string_view field, json::value value) {
    json::set(root_, {"spec", kind_.replicas_field, role, field}, std::move(value));
    return *this;
  }
  JobBuilder& status(json::value value) {
    json::set(root_, {"status"}, std::move(value));
    return *this;
  }
  json::value build() const { return root_; }

 private:
  const JobKind& kind_;
  json::value root_ = {};
};

// What a replica is told, as NAME=value in order; NAME=@path where a field of the pod says it.
inline std::vector<std::string> environment(const JobKind& kind, const json::value& root,
                                            std::string_view role, std::int64_t index) {
  const Job job = read_job(kind, root);
  std::vector<std::string> out;
  for (const EnvVar& var : kind.environment(job)(*job.role(role), index)) {
    out.push_back(var.name + "=" + (var.field.empty() ? var.value : "@" + var.field));
  }
  return out;
}

// How many replicas of a role are where, for verdict().
struct Count {
  std::string_view role = {};
  std::int64_t running = 0;
  std::int64_t succeeded = 0;
};

inline Verdict verdict(const JobKind& kind, const json::value& root, std::vector<Count> counts) {
  const Job job = read_job(kind, root);
  std::vector<RoleState> states;
  for (const Role& role : job.roles) {
    RoleState& state = states.emplace_back(RoleState{.role = &role});
    for (const Count& count : counts) {
      if (count.role != role.name) continue;
      state.running = count.running;
      state.succeeded = count.succeeded;
    }
  }
  return kind.judge(job, states);
}

inline JobBuilder tfjob(std::string_view name = "mnist") { return JobBuilder(tensorflow(), name); }
inline JobBuilder torchjob(std::string_view name = "mnist") { return JobBuilder(pytorch(), name); }

inline JobBuilder mpijob(std::string_view name = "mnist") { return JobBuilder(mpi(), name); }

// A pod of a replica as the API server would give it back.
inline json::value replica_pod(std::string_view role, std::int64_t index, std::string_view phase,
                               std::string_view uid = "pod") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", fmt::format("mnist-{}-{}", role, index)},
            {"namespace", "team"},
            {"uid", fmt::format("{}-{}-{}", uid, role, index)},
            {"creationTimestamp", "2026-11-15T12:00:01Z"},
            {"labels", {{kRoleLabel, json::string(role)}, {kIndexLabel, std::to_string(index)}}}}},
          {"status", {{"phase", json::string(phase)}}}};
}

inline json::value replica_service(std::string_view role, std::int64_t index) {
  json::value service = replica_pod(role, index, "");
  json::set(service, {"kind"}, "Service");
  json::set(service, {"metadata", "uid"}, json::string(fmt::format("service-{}-{}", role, index)));
  service.as_object().erase("status");
  return service;
}

inline void set_exit_code(json::value& pod, std::string_view container, std::int64_t code) {
  json::set(
      pod, {"status", "containerStatuses"},
      json::array{json::object{{"name", json::string(container)},
                               {"restartCount", 0},
                               {"state", {{"terminated", json::object{{"exitCode", code}}}}}}});
}

// The types of a status' conditions in their order, "!" before those that are not True.
inline std::string condition_list(const json::value& object) {
  std::string out;
  for (const json::value& condition : json::get_array(object, {"status", "conditions"})) {
    if (!out.empty()) out += ' ';
    if (json::get_string(condition, {"status"}) != "True") out += '!';
    out += json::get_string(condition, {"type"});
  }
  return out;
}

}  // namespace skiff::training::testing
