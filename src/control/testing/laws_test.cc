#include "control/testing/laws.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "api/meta.h"
#include "control/testing/resources.h"

namespace skiff::control::testing {
namespace {

const api::Resource kRoots = {
    .group = "test.dev", .version = "v1", .plural = "echoes", .kind = "Echo"};

client::Write child_of(const json::value& root, std::string name) {
  client::Write write{.resource = kPods};
  write.body = json::object{
      {"metadata", {{"name", name}, {"ownerReferences", {api::owner_reference(root)}}}}};
  return write;
}

client::Write removal_of(const json::value& pod) {
  return {.verb = client::Verb::kDelete,
          .resource = kPods,
          .ns = std::string(api::ns(pod)),
          .name = std::string(api::name(pod)),
          .uid = std::string(api::uid(pod))};
}

// Runs two pods to success, replaces a failed one, then is done and removes them.
Plan plan_pair(const Observed& observed, Time) {
  Plan plan;
  const json::value& root = *observed.root;
  const bool done = json::get_string(root, {"status", "phase"}) == "Done";
  std::size_t succeeded = 0;
  std::set<std::string> names;
  for (const Object& pod : observed.owned[0]) {
    const std::string_view phase = json::get_string(*pod, {"status", "phase"});
    names.emplace(api::name(*pod));
    succeeded += phase == "Succeeded";
    if (done || phase == "Failed") plan.writes.push_back(removal_of(*pod));
  }
  if (done) return plan;
  for (int i = 0; i < 2; ++i) {
    const std::string name = fmt::format("{}-{}", api::name(root), i);
    if (!names.contains(name)) plan.writes.push_back(child_of(root, name));
  }
  if (succeeded == 2) plan.status = json::object{{"phase", "Done"}};
  return plan;
}

LawCase make_case(std::function<Plan(const Observed&, Time)> plan, unsigned failing = 30) {
  LawCase out;
  out.controller = {.name = "pair", .root = kRoots, .owned = {kPods}, .plan = std::move(plan)};
  out.arrange = [](client::Client& client, Random&) {
    client::Write root{.resource = kRoots, .ns = "ns"};
    root.body = json::object{{"metadata", {{"name", "a"}}}, {"spec", json::object{}}};
    ASSERT_TRUE(client.write(root));
    client::Write foreign{.resource = kPods, .ns = "ns"};
    foreign.body = json::object{{"metadata", {{"name", "foreign"}}}};
    ASSERT_TRUE(client.write(foreign));
  };
  // Pods succeed, and now and then fail.
  out.step = [failing](client::Client& client, Time, Random& random) {
    for (const Object& pod : client.list(kPods, {}, {})->items) {
      if (!json::get_string(*pod, {"status", "phase"}).empty()) continue;
      if (api::controller_of(*pod) == nullptr) continue;
      client::Write write{.verb = client::Verb::kMergePatch,
                          .resource = kPods,
                          .ns = "ns",
                          .name = std::string(api::name(*pod)),
                          .subresource = "status"};
      write.body =
          json::object{{"status", {{"phase", random.chance(failing) ? "Failed" : "Succeeded"}}}};
      return client.write(write).has_value();
    }
    return false;
  };
  out.wrong = [](client::Client& client) -> std::optional<std::string> {
    const json::value root = *client.get(kRoots, "ns", "a");
    if (json::get_string(root, {"status", "phase"}) != "Done") return "the root is not done";
    const std::size_t left = client.list(kPods, {}, {})->items.size();
    if (left != 1) return fmt::format("{} pods are left", left);
    return std::nullopt;
  };
  return out;
}

// The first broken law of a controller that is meant to break one.
std::string first_broken(std::function<Plan(const Observed&, Time)> plan, unsigned failing = 30) {
  const auto broken = check_laws(make_case(std::move(plan), failing));
  return broken.empty() ? "none" : broken.front();
}

TEST(Laws, a_sound_controller_breaks_none) {
  EXPECT_EQ(check_laws(make_case(plan_pair)), std::vector<std::string>{});
}

TEST(Laws, a_controller_that_never_rests_is_not_idempotent) {
  const std::string broken = first_broken([](const Observed& observed, Time now) {
    Plan plan = plan_pair(observed, now);
    plan.status = json::object{
        {"phase", "Busy"}, {"n", json::get_int(*observed.root, {"status", "n"}).value_or(0) + 1}};
    return plan;
  });
  EXPECT_NE(broken.find("idempotent: still writes"), std::string::npos) << broken;
}

TEST(Laws, a_plan_that_depends_on_anything_else_is_not_idempotent) {
  int calls = 0;
  const std::string broken = first_broken([&calls](const Observed& observed, Time now) {
    Plan plan = plan_pair(observed, now);
    plan.notes.push_back({.reason = "Call", .message = std::to_string(++calls)});
    return plan;
  });
  EXPECT_NE(broken.find("idempotent: two plans"), std::string::npos) << broken;
}

TEST(Laws, a_controller_that_forgets_failed_pods_does_not_converge) {
  const std::string broken = first_broken([](const Observed& observed, Time now) {
    Plan plan = plan_pair(observed, now);
    if (!plan.status)
      std::erase_if(plan.writes, [](const auto& w) { return w.verb == client::Verb::kDelete; });
    return plan;
  });
  EXPECT_NE(broken.find("convergent: "), std::string::npos) << broken;
}

TEST(Laws, children_made_only_all_at_once_are_not_crash_safe) {
  const auto plan = [](const Observed& observed, Time now) {
    Plan out = plan_pair(observed, now);
    // Believes that one child means both: true unless the process died between the two.
    if (!observed.owned[0].empty()) {
      std::erase_if(out.writes, [](const auto& w) { return w.verb == client::Verb::kCreate; });
    }
    return out;
  };
  const std::string broken = first_broken(plan, 0);
  // Write 0 is the condition on the root, 1 and 2 make the children.
  EXPECT_NE(broken.find("crash-safe: cut before write 2"), std::string::npos) << broken;
}

TEST(Laws, deleting_what_looked_stuck_is_not_stale_safe) {
  const auto plan = [](const Observed& observed, Time now) {
    Plan out = plan_pair(observed, now);
    // An old observation shows the pod without a phase; by now it may have one.
    for (const Object& pod : observed.owned[0]) {
      const bool started = json::find(*pod, {"status", "phase"}) != nullptr;
      if (!started && now - *api::created_at(*pod) >= std::chrono::seconds(2)) {
        out.writes.push_back(removal_of(*pod));
      }
    }
    return out;
  };
  // Two steps start both pods, so a fresh look never finds one stuck.
  LawCase slow = make_case(plan, 0);
  slow.step = [step = slow.step, waits = 0](client::Client& client, Time now,
                                            Random& random) mutable {
    return step(client, now, random) || ++waits % 4 != 0;
  };
  slow.controller.plan = [plan](const Observed& observed, Time now) {
    Plan out = plan(observed, now);
    // Not done before the end, so that there is a time in which the old look does harm.
    if (now < Time(std::chrono::seconds(1'767'225'604))) out.status.reset();
    return out;
  };
  const auto broken = check_laws(slow);
  ASSERT_FALSE(broken.empty());
  EXPECT_NE(broken.front().find("stale-safe: delete pods"), std::string::npos) << broken.front();
}

TEST(Laws, touching_a_strangers_pod_breaks_ownership) {
  const std::string broken = first_broken([](const Observed& observed, Time now) {
    Plan plan = plan_pair(observed, now);
    plan.writes.push_back(
        {.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "foreign"});
    return plan;
  });
  EXPECT_NE(broken.find("ownership: delete pods ns/foreign"), std::string::npos) << broken;
}

TEST(Laws, what_is_only_looked_at_is_not_written_unless_the_controller_says_so) {
  LawCase law_case = make_case([](const Observed& observed, Time now) {
    Plan plan = plan_pair(observed, now);
    for (const Object& pod : observed.seen[0]) {
      if (api::label(*pod, "mark") == "yes") continue;
      client::Write write{.verb = client::Verb::kMergePatch,
                          .resource = kPods,
                          .ns = std::string(api::ns(*pod)),
                          .name = std::string(api::name(*pod))};
      write.body = json::object{{"metadata", {{"labels", {{"mark", "yes"}}}}}};
      plan.writes.push_back(std::move(write));
    }
    return plan;
  });
  const auto named = [](const json::value& o) {
    return std::vector<std::string>{std::string(api::name(o))};
  };
  law_case.controller.seen = {
      {.resource = kPods,
       .wants = [](const json::value&) { return std::vector<std::string>{"foreign"}; },
       .has = named}};
  const auto broken = check_laws(law_case);
  ASSERT_FALSE(broken.empty());
  EXPECT_NE(broken.front().find("ownership: patch pods ns/foreign"), std::string::npos);
  law_case.controller.seen[0].writes = true;
  EXPECT_EQ(check_laws(law_case), std::vector<std::string>{});
}

TEST(Laws, a_child_without_its_owner_breaks_ownership) {
  const std::string broken = first_broken([](const Observed& observed, Time now) {
    Plan plan = plan_pair(observed, now);
    for (client::Write& write : plan.writes) {
      if (write.verb == client::Verb::kCreate) {
        write.body.as_object()["metadata"].as_object().erase("ownerReferences");
      }
    }
    return plan;
  });
  EXPECT_NE(broken.find("ownership: create pods"), std::string::npos) << broken;
}

}  // namespace
}  // namespace skiff::control::testing
