// The laws of controllers (control/testing/laws.h) for jobs under MPI runtimes, whose pods, files
// and rights change while they run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "control/testing/laws.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/mpi.h"
#include "features/trainer/plan.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

using Complaint = std::optional<std::string>;
using Names = std::set<std::string, std::less<>>;

constexpr std::string_view kNamespace = "team";
constexpr std::string_view kJob = "mnist";
constexpr std::string_view kMap = "mnist-mpi-hostfile";
constexpr std::string_view kAccount = "mnist-launcher";
const api::Resource kPods = {.version = "v1", .plural = "pods", .kind = "Pod"};

void must_write_mpi(client::Client& client, client::Write write) {
  write.ns = write.resource.namespaced ? kNamespace : std::string_view();
  const Result<json::value> result = client.write(write);
  ASSERT_TRUE(result.has_value()) << result.error().message;
}

void change_mpi(client::Client& client, const api::Resource& resource, std::string_view name,
                json::value body, std::string_view subresource = {}) {
  must_write_mpi(client, {.verb = client::Verb::kMergePatch,
                          .resource = resource,
                          .name = std::string(name),
                          .subresource = std::string(subresource),
                          .body = std::move(body)});
}

void remove(client::Client& client, const api::Resource& resource, std::string_view name) {
  must_write_mpi(client, {.verb = client::Verb::kDelete,
                          .resource = resource,
                          .name = std::string(name),
                          .body = json::object{}});
}

json::value get(client::Client& client, const api::Resource& resource, std::string_view name) {
  Result<json::value> found = client.get(resource, kNamespace, name);
  return found ? *std::move(found) : json::value();
}

std::vector<Object> all(client::Client& client, const api::Resource& resource) {
  return client.list(resource, {}, {})->items;
}

api::Resource roles() { return mpi_kinds()[1]; }

bool over(const json::value& job) {
  return api::condition_true(job, "Complete") || api::condition_true(job, "Failed");
}

json::value laws_runtime(bool launcher_is_node) {
  for (const client::Write& write : builtin_objects()) {
    if (api::name(write.body) != "deepspeed-distributed") continue;
    json::value out = write.body;
    json::set(out, {"spec", "mlPolicy", "mpi", "runLauncherAsNode"}, launcher_is_node);
    return out;
  }
  return {};
}

json::value laws_trainjob(Random& random) {
  json::value out =
      testing::trainjob(random.chance(30) ? R"({"activeDeadlineSeconds": 15})" : "{}");
  json::set(out, {"spec", "runtimeRef", "name"}, "deepspeed-distributed");
  json::set(out, {"spec", "trainer", "numNodes"}, 1 + static_cast<std::int64_t>(random.below(3)));
  if (random.chance(30)) json::set(out, {"spec", "suspend"}, true);
  return out;
}

// A pod as a JobSet's Jobs make them: its name has a part that nobody knows before.
json::value pod_of(const json::value& jobset, const json::value& part, std::int64_t index,
                   std::uint64_t suffix) {
  const std::string_view name = json::get_string(part, {"name"});
  const std::string host = fmt::format("{}-{}-0-{}", api::name(jobset), name, index);
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", fmt::format("{}-{}", host, suffix)},
            {"namespace", json::string(kNamespace)},
            {"labels",
             {{"jobset.sigs.k8s.io/jobset-name", json::string(api::name(jobset))},
              {"jobset.sigs.k8s.io/jobset-uid", json::string(api::uid(jobset))},
              {"jobset.sigs.k8s.io/replicatedjob-name", json::string(name)},
              {"batch.kubernetes.io/job-completion-index", std::to_string(index)}}},
            {"annotations",
             json::get_object(part, {"template", "spec", "template", "metadata", "annotations"})},
            {"ownerReferences", json::array{api::owner_reference(jobset)}}}},
          {"spec", {{"hostname", host}}}};
}

// What happens around the controller, and what must hold whenever it has nothing left to do.
class World {
 public:
  void arrange(client::Client& client, Random& random) {
    *this = World();
    launcher_trains_ = random.chance(50);
    must_write_mpi(
        client, {.resource = cluster_runtime_resource(), .body = laws_runtime(launcher_trains_)});
    must_write_mpi(client, {.resource = trainjob_resource(), .body = laws_trainjob(random)});
    for (const api::Resource& kind : {config_map_resource(), roles()}) {
      must_write_mpi(client, {.resource = kind, .body = {{"metadata", {{"name", "stranger"}}}}});
    }
    // A pod of a set of that name which was there before.
    json::value left = must_be_host("mnist-node-0-0", "gone");
    must_write_mpi(client, {.resource = kPods, .body = std::move(left)});
  }

  bool step(client::Client& client, Time now, Random& random) {
    const json::value job = get(client, trainjob_resource(), kJob);
    if (!wrong_) wrong_ = at_rest(client, job);
    if (over(job)) return false;
    if (json::get_bool(job, {"spec", "suspend"}).value_or(false)) {
      // The JobSet has taken its pods away before anybody resumes it.
      remove_pods(client, api::uid(get(client, jobset_resource(), kJob)));
      if (random.chance(50)) return meddle(client, random);
      change_mpi(client, trainjob_resource(), kJob, {{"spec", {{"suspend", false}}}});
      return true;
    }
    ++steps_;
    const bool early = steps_ < 25;
    if (early && random.chance(10)) {
      change_mpi(client, trainjob_resource(), kJob, {{"spec", {{"suspend", true}}}});
      return true;
    }
    // At times more happens at once.
    const bool meddled = early && random.chance(25) && meddle(client, random);
    if (meddled && random.chance(50)) return true;
    return run_on(client, now, random) || meddled;
  }

  Complaint never(client::Client& client) {
    const json::value job = get(client, trainjob_resource(), kJob);
    if (was_over_ && !over(job)) return "a job was over and is not any more";
    was_over_ = over(job);
    // Who finds a pod's name in the map may start programs in it at once. Of a role that somebody
    // took away or emptied nothing can be said.
    const json::value role = get(client, roles(), kAccount);
    if (json::get_array(role, {"rules"}).empty()) return {};
    const Names allowed = allowed_pods(role);
    for (const std::string& name : known_pods(get(client, config_map_resource(), kMap))) {
      const json::value pod = get(client, kPods, name);
      if (json::get_string(pod, {"status", "phase"}) == "Running" && !allowed.contains(name)) {
        return fmt::format("{} is in the map and may not be used", name);
      }
    }
    return {};
  }

  Complaint wrong(client::Client& client) const {
    if (wrong_) return wrong_;
    if (get(client, config_map_resource(), "stranger").is_null()) return "a stranger's map is gone";
    if (!over(get(client, trainjob_resource(), kJob))) return "the job has not ended";
    return {};
  }

 private:
  static json::value must_be_host(std::string_view host, std::string_view set) {
    json::value out = testing::must_parse(R"({"status": {"phase": "Running"}})");
    json::set(out, {"metadata", "name"}, json::string(fmt::format("{}-old", host)));
    json::set(out, {"metadata", "labels"},
              {{"jobset.sigs.k8s.io/jobset-name", json::string(kJob)},
               {"jobset.sigs.k8s.io/jobset-uid", json::string(set)}});
    json::set(out, {"metadata", "annotations", kHostAnnotation}, "node");
    json::set(out, {"spec", "hostname"}, json::string(host));
    return out;
  }

  static Names allowed_pods(const json::value& role) {
    Names out;
    for (const json::value& rule : json::get_array(role, {"rules"})) {
      const json::array& what = json::get_array(rule, {"resources"});
      if (what.empty() || what[0] != "pods/exec") continue;
      for (const std::string& name : json::strings(json::get_array(rule, {"resourceNames"}))) {
        out.insert(name);
      }
    }
    return out;
  }

  static Names known_pods(const json::value& map) {
    Names out;
    std::string_view rest = json::get_string(map, {"data", "pods"});
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      out.emplace(line.substr(line.find('=') + 1));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    return out;
  }

  // The files, rights and account of a job that is not over are there and right.
  Complaint at_rest(client::Client& client, const json::value& job) const {
    if (over(job)) return {};
    for (const api::Resource& kind : mpi_kinds()) {
      const json::value found = get(client, kind, kAccount);
      if (!api::controlled_by(found, api::uid(job))) return "there is no " + kind.kind;
    }
    const json::value set = get(client, jobset_resource(), kJob);
    if (!api::controlled_by(set, api::uid(job))) return "there is no JobSet";
    const json::value map = get(client, config_map_resource(), kMap);
    if (!api::controlled_by(map, api::uid(job))) return "there is no map";
    Names expected;
    for (const Object& pod : all(client, kPods)) {
      if (api::label(*pod, "jobset.sigs.k8s.io/jobset-uid") == api::uid(set) &&
          json::get_string(*pod, {"status", "phase"}) == "Running") {
        expected.emplace(api::name(*pod));
      }
    }
    if (known_pods(map) != expected) return "the map has other pods than those that run";
    if (allowed_pods(get(client, roles(), kAccount)) != expected) {
      return "the role is about other pods than those that run";
    }
    const std::int64_t nodes = *json::get_int(job, {"spec", "trainer", "numNodes"});
    const std::int64_t hosts = launcher_trains_ ? std::max<std::int64_t>(nodes, 2) : nodes;
    const std::string_view file = json::get_string(map, {"data", "hostfile"});
    if (std::ranges::count(file, '\n') != hosts) {
      return fmt::format("the host file of {} nodes is {}", nodes, file);
    }
    return {};
  }

  static void remove_pods(client::Client& client, std::string_view set) {
    for (const Object& pod : all(client, kPods)) {
      if (api::label(*pod, "jobset.sigs.k8s.io/jobset-uid") == set) {
        remove(client, kPods, api::name(*pod));
      }
    }
  }

  // Somebody takes one of the job's objects away, or writes nonsense into it.
  static bool meddle(client::Client& client, Random& random) {
    std::vector<api::Resource> kinds = mpi_kinds();
    kinds.push_back(config_map_resource());
    kinds.push_back(jobset_resource());
    const api::Resource& kind = kinds[random.below(kinds.size())];
    std::vector<std::string> names;
    for (const Object& object : all(client, kind)) {
      if (api::controller_of(*object) != nullptr) names.emplace_back(api::name(*object));
    }
    if (names.empty()) return true;
    const std::string& name = names[random.below(names.size())];
    const bool spoils = random.chance(50) && (kind.plural == "roles" || name == kMap);
    if (!spoils) {
      remove(client, kind, name);
    } else if (kind.plural == "roles") {
      change_mpi(client, kind, name, {{"rules", json::array{}}});
    } else {
      change_mpi(client, kind, name, {{"data", {{"hostfile", "nonsense"}, {"pods", "x=y\n"}}}});
    }
    return true;
  }

  // The JobSet does as JobSets do: it makes pods, and ends as its launcher does.
  bool run_on(client::Client& client, Time now, Random& random) {
    const json::value set = get(client, jobset_resource(), kJob);
    if (set.is_null()) return false;
    std::vector<Object> pods;
    for (const Object& pod : all(client, kPods)) {
      if (api::label(*pod, "jobset.sigs.k8s.io/jobset-uid") == api::uid(set)) pods.push_back(pod);
    }
    for (const json::value& part : json::get_array(set, {"spec", "replicatedJobs"})) {
      const auto count = json::get_int(part, {"template", "spec", "parallelism"}).value_or(1);
      for (std::int64_t i = 0; i < count; ++i) {
        json::value wanted = pod_of(set, part, i, suffix_);
        const std::string_view host = json::get_string(wanted, {"spec", "hostname"});
        const auto found = std::ranges::find_if(pods, [&](const Object& pod) {
          return json::get_string(*pod, {"spec", "hostname"}) == host;
        });
        if (found == pods.end()) {
          ++suffix_;
          must_write_mpi(client, {.resource = kPods, .body = std::move(wanted)});
          return true;
        }
        if (json::find(**found, {"status"}) == nullptr) {
          change_mpi(client, kPods, api::name(**found), {{"status", {{"phase", "Running"}}}},
                     "status");
          return true;
        }
      }
    }
    const Object& one = pods[random.below(pods.size())];
    if (steps_ < 40 && random.chance(50)) {
      remove(client, kPods, api::name(*one));  // it was lost, and is replaced
      return true;
    }
    end(client, set, now, random);
    return true;
  }

  static void end(client::Client& client, const json::value& set, Time now, Random& random) {
    const bool fails = random.chance(40);
    const json::object condition{{"type", fails ? "Failed" : "Completed"},
                                 {"status", "True"},
                                 {"reason", fails ? "FailedJobs" : "AllJobsCompleted"},
                                 {"message", "the launcher has ended"},
                                 {"lastTransitionTime", rfc3339(now)}};
    change_mpi(client, jobset_resource(), api::name(set),
               {{"status", {{"conditions", json::array{condition}}}}}, "status");
  }

  bool launcher_trains_ = false;
  bool was_over_ = false;
  unsigned steps_ = 0;
  std::uint64_t suffix_ = 0;
  Complaint wrong_ = {};
};

TEST(MpiTrainJobLaws, hold) {
  World world;
  control::testing::LawCase laws;
  laws.controller = trainjob_controller();
  laws.arrange = [&](client::Client& client, Random& random) { world.arrange(client, random); };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return world.step(client, now, random);
  };
  laws.never = [&](client::Client& client) { return world.never(client); };
  laws.wrong = [&](client::Client& client) { return world.wrong(client); };
  laws.cuts_max = 30;
  for (const std::string& sentence : control::testing::check_laws(laws, 40)) {
    ADD_FAILURE() << sentence;
  }
}

}  // namespace
}  // namespace skiff::trainer
