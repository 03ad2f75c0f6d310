// A job and its children in memory, with just enough of an API server to carry out plans: names are
// unique, deletes ask for the uid, children get a uid of their own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "features/training/engine/plan.h"
#include "features/training/testing/builders.h"

namespace skiff::training::testing {

class World {
 public:
  World(const JobKind& kind, json::value root) : kind_(kind), root(std::move(root)) {}

  control::Observed observe() const {
    control::Observed observed{.root = share(root), .owned = {{}, {}}};
    for (const auto& [name, pod] : pods) observed.owned[0].push_back(share(pod));
    for (const auto& [name, service] : services) observed.owned[1].push_back(share(service));
    for (const api::Resource& resource : kind_.companion_kinds) {
      auto& list = observed.owned.emplace_back();
      const auto found = companions.find(resource.plural);
      if (found == companions.end()) continue;
      for (const auto& [name, object] : found->second) list.push_back(share(object));
    }
    return observed;
  }

  control::Plan plan() const { return plan_job(kind_, observe(), now); }

  // Carries out the first `steps` steps: deletes, creates, patches, the status, the root's
  // deletion. False where a step was refused; what came before it stays done.
  bool apply(const control::Plan& plan,
             std::size_t steps = std::numeric_limits<std::size_t>::max()) {
    for (const client::Verb verb :
         {client::Verb::kDelete, client::Verb::kCreate, client::Verb::kMergePatch}) {
      for (const client::Write& write : plan.writes) {
        if (write.verb != verb) continue;
        if (steps-- == 0) return true;
        if (!carry_out(write)) return false;
      }
    }
    if (plan.status) {
      if (steps-- == 0) return true;
      json::set(root, {"status"}, *plan.status);
    }
    if (plan.delete_root && steps != 0) deleted = true;
    for (const control::Note& note : plan.notes) notes.push_back(note);
    return true;
  }

  // Plans and applies until nothing is left to do; the number of plans that did something.
  int settle() {
    for (int round = 0; round < 40; ++round) {
      const control::Plan next = plan();
      if (next.empty() || deleted) return round;
      if (!apply(next)) return -1;
    }
    ADD_FAILURE() << "forty plans did not settle the job";
    return -1;
  }

  void set_phase(const std::string& name, std::string_view phase, std::int64_t code = 0) {
    ASSERT_TRUE(pods.contains(name)) << name;
    json::set(pods[name], {"status", "phase"}, json::string(phase));
    if (phase == "Succeeded" || phase == "Failed") {
      set_exit_code(pods[name], kind_.container, code);
    }
  }
  void all_phases(std::string_view phase) {
    for (auto& [name, pod] : pods) set_phase(name, phase);
  }
  std::string conditions() const { return condition_list(root); }
  std::int64_t count(std::string_view role, std::string_view what) const {
    return json::get_int(root, {"status", "replicaStatuses", role, what}).value_or(0);
  }
  std::int64_t restarts() const { return json::get_int(root, {"status", "restarts"}).value_or(0); }
  std::string pod_names() const {
    std::string out;
    for (const auto& [name, pod] : pods) out += (out.empty() ? "" : " ") + name;
    return out;
  }
  int told(std::string_view reason) const {
    int n = 0;
    for (const control::Note& note : notes) n += note.reason == reason;
    return n;
  }

 private:
  std::map<std::string, json::value>& table_of(const client::Write& write) {
    if (write.resource.plural == "pods") return pods;
    return write.resource.plural == "services" ? services : companions[write.resource.plural];
  }

  bool carry_out(const client::Write& write) {
    if (write.verb == client::Verb::kDelete) return remove(write);
    return write.verb == client::Verb::kCreate ? create(write) : patch(write);
  }

  // As much of a merge patch as plans ask for: no member is taken away.
  static void merge(json::value& to, const json::value& from) {
    if (!from.is_object() || !to.is_object()) {
      to = from;
      return;
    }
    for (const auto& [key, value] : from.get_object()) merge(to.get_object()[key], value);
  }

  bool patch(const client::Write& write) {
    const auto found = table_of(write).find(write.name);
    if (found == table_of(write).end() || api::uid(found->second) != write.uid) return false;
    merge(found->second, write.body);
    return true;
  }

  bool create(const client::Write& write) {
    auto& table = table_of(write);
    const std::string name(api::name(write.body));
    if (table.contains(name)) return false;
    json::value object = write.body;
    json::set(object, {"metadata", "uid"}, json::string(fmt::format("made-{}", ++made_)));
    json::set(object, {"metadata", "creationTimestamp"}, json::string(rfc3339(now)));
    if (&table == &pods) json::set(object, {"status", "phase"}, "Pending");
    table[name] = std::move(object);
    return true;
  }

  bool remove(const client::Write& write) {
    auto& table = table_of(write);
    const auto found = table.find(write.name);
    if (found == table.end() || api::uid(found->second) != write.uid) return false;
    // A pod whose program runs gets time to end; a node takes it away later.
    if (graceful && &table == &pods && read_running(found->second)) {
      json::set(found->second, {"metadata", "deletionTimestamp"}, json::string(rfc3339(now)));
    } else {
      table.erase(found);
    }
    return true;
  }

  static bool read_running(const json::value& pod) {
    return json::get_string(pod, {"status", "phase"}) == "Running";
  }

  const JobKind& kind_;
  int made_ = 0;

 public:
  json::value root;
  std::map<std::string, json::value> pods = {};
  std::map<std::string, json::value> services = {};
  std::map<std::string, std::map<std::string, json::value>> companions = {};  // by plural and name
  std::vector<control::Note> notes = {};
  Time now = *parse_time("2026-11-15T12:00:00Z");
  bool graceful = false;
  bool deleted = false;
};

}  // namespace skiff::training::testing
