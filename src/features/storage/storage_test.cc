#include "features/storage/storage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/core/claims.h"
#include "api/meta.h"
#include "base/check.h"
#include "base/random.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"
#include "features/storage/feature.h"

namespace skiff::storage {
namespace {

json::value parse(const std::string& text) {
  auto parsed = json::parse(text);
  SKIFF_CHECK(parsed.has_value(), text);
  return *std::move(parsed);
}

// A server with the controller on it, and hands for those who act beside it.
class Cluster {
 public:
  Cluster() {
    runtime_.add(make({.folder = "/data/volumes"}));
    create(node_resource(), "", R"({"metadata":{"name":"n1",
        "labels":{"kubernetes.io/hostname":"host1"}}})");
    EXPECT_TRUE(server.write(default_class()));
    create(class_resource(), "", R"({"metadata":{"name":"now"},"provisioner":"skiff.dev/local-path",
        "reclaimPolicy":"Retain","volumeBindingMode":"Immediate"})");
  }

  void create(const api::Resource& resource, std::string ns, const std::string& text) {
    const auto done =
        server.write({.resource = resource, .ns = std::move(ns), .body = parse(text)});
    ASSERT_TRUE(done) << done.error().message;
  }
  void claim(const std::string& name, const std::string& more, const std::string& size = "1Gi") {
    create(claim_resource(), "ns",
           R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":")" + name +
               R"(","finalizers":["kubernetes.io/pvc-protection"]},"spec":{
               "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":")" +
               size + R"("}})" + more + "}}");
  }
  void volume(const std::string& name, const std::string& size, const std::string& more = "",
              const std::string& labels = "{}") {
    create(volume_resource(), "",
           R"({"metadata":{"name":")" + name + R"(","labels":)" + labels +
               R"(,"finalizers":["kubernetes.io/pv-protection"]},"spec":{
               "accessModes":["ReadWriteOnce","ReadOnlyMany"],"hostPath":{"path":"/srv"},
               "persistentVolumeReclaimPolicy":"Retain","capacity":{"storage":")" +
               size + R"("})" + more + "}}");
  }
  void pod(const std::string& name, const std::string& volume, const std::string& node = "") {
    create(pod_resource(), "ns",
           R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
               R"("},"spec":{"nodeName":")" + node + R"(","volumes":[)" + volume + "]}}");
  }
  void change(const api::Resource& resource, const std::string& name, const std::string& text,
              const std::string& subresource = "") {
    const auto done = server.write({.verb = client::Verb::kMergePatch,
                                    .resource = resource,
                                    .ns = resource.namespaced ? "ns" : "",
                                    .name = name,
                                    .subresource = subresource,
                                    .body = parse(text)});
    ASSERT_TRUE(done) << done.error().message;
  }
  void remove(const api::Resource& resource, const std::string& name) {
    const auto done = server.write({.verb = client::Verb::kDelete,
                                    .resource = resource,
                                    .ns = resource.namespaced ? "ns" : "",
                                    .name = name,
                                    .body = json::object{{"gracePeriodSeconds", 0}}});
    ASSERT_TRUE(done) << done.error().message;
  }
  void settle() {
    for (int round = 0; round < 50; ++round) {
      const std::uint64_t before = server.revision();
      runtime_.pump();
      if (server.revision() == before) return;
      clock_.advance(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "fifty rounds did not settle";
  }
  json::value get(const api::Resource& resource, const std::string& name) {
    const auto found = server.get(resource, resource.namespaced ? "ns" : "", name);
    return found ? *found : json::value();
  }
  std::string claim_says(const std::string& name) {
    const json::value claim = get(claim_resource(), name);
    if (claim.is_null()) return "gone";
    return std::string(json::get_string(claim, {"status", "phase"})) + " " +
           std::string(json::get_string(claim, {"spec", "volumeName"}));
  }
  std::string volume_says(const std::string& name) {
    const json::value volume = get(volume_resource(), name);
    if (volume.is_null()) return "gone";
    return std::string(json::get_string(volume, {"status", "phase"})) + " " +
           std::string(json::get_string(volume, {"spec", "claimRef", "name"}));
  }
  std::vector<std::string> told(const std::string& about) {
    const api::Resource events{.version = "v1", .plural = "events", .kind = "Event"};
    std::vector<std::string> out;
    for (const Object& event : server.list(events, "", {})->items) {
      if (json::get_string(*event, {"involvedObject", "name"}) != about) continue;
      out.push_back(std::string(json::get_string(*event, {"reason"})) + ": " +
                    std::string(json::get_string(*event, {"message"})));
    }
    return out;
  }

  env::sim::Clock clock_ = env::sim::Clock();
  control::testing::MemoryServer server{clock_};

 private:
  control::Runtime runtime_{server, clock_};
};

const std::string kStandard = R"(,"storageClassName":"standard")";
const std::string kUses = R"({"name":"v","persistentVolumeClaim":{"claimName":"c"}})";
using Lines = std::vector<std::string>;

TEST(Storage, AClaimWaitsForItsFirstConsumerAndItsNode) {
  Cluster cluster;
  cluster.claim("c", kStandard);
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), " ");
  EXPECT_EQ(cluster.told("c"), Lines{"WaitForFirstConsumer: waiting for first consumer to be "
                                     "created before binding"});
  cluster.pod("p", kUses);
  cluster.settle();
  EXPECT_EQ(cluster.told("c").size(), 2U);
  cluster.change(claim_resource(), "c",
                 R"({"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"n1"}}})");
  cluster.settle();
  const json::value claim = cluster.get(claim_resource(), "c");
  const std::string name = "pvc-" + std::string(api::uid(claim));
  EXPECT_EQ(cluster.claim_says("c"), "Bound " + name);
  EXPECT_TRUE(api::bound(claim));
  EXPECT_EQ(json::get_string(claim, {"status", "capacity", "storage"}), "1Gi");
  EXPECT_EQ(cluster.volume_says(name), "Bound c");
  const json::value volume = cluster.get(volume_resource(), name);
  EXPECT_EQ(json::get_string(volume, {"spec", "hostPath", "path"}), "/data/volumes/" + name);
  EXPECT_EQ(json::get_string(volume, {"spec", "persistentVolumeReclaimPolicy"}), "Delete");
  EXPECT_NE(json::serialize(volume).find(R"("values":["host1"])"), std::string::npos);
  EXPECT_EQ(cluster.told("c").size(), 3U);
}

TEST(Storage, AClassThatBindsAtOnceNeedsNoPod) {
  Cluster cluster;
  cluster.claim("c", R"(,"storageClassName":"now")");
  cluster.settle();
  const std::string name = "pvc-" + std::string(api::uid(cluster.get(claim_resource(), "c")));
  EXPECT_EQ(cluster.claim_says("c"), "Bound " + name);
  EXPECT_EQ(json::find(cluster.get(volume_resource(), name), {"spec", "nodeAffinity"}), nullptr);
}

TEST(Storage, AClaimThatIsOlderThanTheDefaultClassGetsIt) {
  Cluster cluster;
  cluster.claim("older", "");
  cluster.claim("chose-none", R"(,"storageClassName":"")");
  cluster.settle();
  EXPECT_EQ(api::storage_class(cluster.get(claim_resource(), "older")), "standard");
  EXPECT_EQ(api::storage_class(cluster.get(claim_resource(), "chose-none")), "");
}

TEST(Storage, AClaimThatAsksForMoreGetsIt) {
  Cluster cluster;
  cluster.claim("c", R"(,"storageClassName":"now")");
  cluster.settle();
  cluster.change(claim_resource(), "c", R"({"spec":{"resources":{"requests":{"storage":"3Gi"}}}})");
  cluster.settle();
  const json::value claim = cluster.get(claim_resource(), "c");
  EXPECT_EQ(json::get_string(claim, {"status", "capacity", "storage"}), "3Gi");
  const std::string name(json::get_string(claim, {"spec", "volumeName"}));
  EXPECT_EQ(json::get_string(cluster.get(volume_resource(), name), {"spec", "capacity", "storage"}),
            "3Gi");
  // A volume made by hand is as large as its maker says.
  cluster.volume("v", "1Gi");
  cluster.settle();
  cluster.claim("d", R"(,"storageClassName":"")");
  cluster.settle();
  cluster.change(claim_resource(), "d", R"({"spec":{"resources":{"requests":{"storage":"3Gi"}}}})");
  cluster.settle();
  EXPECT_EQ(json::get_string(cluster.get(claim_resource(), "d"), {"status", "capacity", "storage"}),
            "1Gi");
}

TEST(Storage, TheSmallestFreeVolumeThatWillDoIsTaken) {
  Cluster cluster;
  cluster.volume("small", "1Gi");
  cluster.volume("large", "50Gi");
  cluster.volume("fitting", "5Gi");
  cluster.volume("labelled", "4Gi", "", R"({"disk":"fast"})");
  cluster.volume("other-class", "3Gi", R"(,"storageClassName":"x")");
  cluster.settle();
  EXPECT_EQ(cluster.volume_says("small"), "Available ");
  cluster.claim("c", R"(,"storageClassName":"")", "2Gi");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), "Bound labelled");
  cluster.claim("d", R"(,"storageClassName":"")", "2Gi");
  cluster.claim("e", R"(,"storageClassName":"")", "2Gi");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("d"), "Bound fitting");
  EXPECT_EQ(cluster.claim_says("e"), "Bound large");
  cluster.claim("f", R"(,"storageClassName":"")", "2Gi");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("f"), " ");
  EXPECT_EQ(cluster.told("f"), Lines{"FailedBinding: no persistent volumes available for this "
                                     "claim and no storage class is set"});
  cluster.claim("g", R"(,"storageClassName":"","selector":{"matchLabels":{"disk":"fast"}})", "1Gi");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("g"), " ");
}

TEST(Storage, AVolumeThatIsNamedMustFit) {
  Cluster cluster;
  cluster.volume("v", "1Gi");
  cluster.claim("c", R"(,"storageClassName":"","volumeName":"v")", "2Gi");
  cluster.claim("m", R"(,"storageClassName":"","volumeName":"absent")");
  cluster.settle();
  EXPECT_EQ(cluster.told("c"),
            Lines{"VolumeMismatch: Cannot bind to requested volume \"v\": requested PV is too "
                  "small"});
  cluster.claim("d", R"(,"storageClassName":"","volumeName":"v")");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("d"), "Bound v");
  EXPECT_EQ(cluster.claim_says("m"), " absent");
  const Lines told = cluster.told("c");
  EXPECT_NE(std::ranges::find(told,
                              "FailedBinding: volume \"v\" already bound to a different "
                              "claim."),
            told.end());
}

TEST(Storage, AReservedVolumeWaitsForItsClaim) {
  Cluster cluster;
  cluster.volume("v", "5Gi", R"(,"claimRef":{"namespace":"ns","name":"c"})");
  cluster.claim("other", R"(,"storageClassName":"")");
  cluster.settle();
  EXPECT_EQ(cluster.volume_says("v"), "Available c");
  EXPECT_EQ(cluster.claim_says("other"), " ");
  cluster.claim("c", R"(,"storageClassName":"standard")");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), "Bound v");
}

TEST(Storage, AClaimInUseStaysUntilItsPodIsGone) {
  Cluster cluster;
  cluster.volume("v", "1Gi");
  cluster.claim("c", R"(,"storageClassName":"")");
  cluster.pod("p", kUses, "n1");
  cluster.pod("waiting", kUses);
  cluster.settle();
  cluster.remove(claim_resource(), "c");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), "Bound v");
  cluster.remove(pod_resource(), "p");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), "gone");
  EXPECT_EQ(cluster.volume_says("v"), "Released c");
  // The data may still be somebody's: no claim gets it, not even one of the same name.
  cluster.claim("c", R"(,"storageClassName":"")");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), " ");
  cluster.change(volume_resource(), "v", R"({"spec":{"claimRef":null}})");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), "Bound v");
}

TEST(Storage, ABoundVolumeIsProtectedAndALostOneIsTold) {
  Cluster cluster;
  cluster.volume("v", "1Gi");
  cluster.settle();
  cluster.claim("c", R"(,"storageClassName":"")");
  cluster.settle();
  cluster.remove(volume_resource(), "v");
  cluster.settle();
  EXPECT_EQ(cluster.volume_says("v"), "Bound c");
  cluster.change(volume_resource(), "v", R"({"metadata":{"finalizers":[]}})");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("c"), "Lost v");
  EXPECT_EQ(cluster.told("c"), Lines{"ClaimLost: Bound claim has lost its PersistentVolume. Data "
                                     "on the volume is lost!"});
}

TEST(Storage, WhatNobodyHereCanReclaimIsToldAsFailed) {
  Cluster cluster;
  cluster.volume("v", "1Gi");
  cluster.change(volume_resource(), "v", R"({"spec":{"persistentVolumeReclaimPolicy":"Delete"}})");
  cluster.claim("c", R"(,"storageClassName":"")");
  cluster.settle();
  cluster.remove(claim_resource(), "c");
  cluster.settle();
  EXPECT_EQ(cluster.volume_says("v"), "Failed c");
  cluster.remove(volume_resource(), "v");
  cluster.settle();
  EXPECT_EQ(cluster.volume_says("v"), "gone");
}

TEST(Storage, WhatCannotBeMadeIsRefusedWithAReason) {
  Cluster cluster;
  cluster.create(class_resource(), "",
                 R"({"metadata":{"name":"ext"},"provisioner":"example.com/x"})");
  cluster.claim("block", R"(,"storageClassName":"now","volumeMode":"Block")");
  cluster.claim("selects", R"(,"storageClassName":"now","selector":{"matchLabels":{"a":"b"}})");
  cluster.claim("copies", R"(,"storageClassName":"now","dataSource":{"kind":"X","name":"y"})");
  cluster.claim("unknown", R"(,"storageClassName":"nope")");
  cluster.claim("external", R"(,"storageClassName":"ext")");
  cluster.settle();
  for (const char* name : {"block", "selects", "copies", "unknown"}) {
    ASSERT_EQ(cluster.told(name).size(), 1U) << name;
    EXPECT_TRUE(cluster.told(name)[0].starts_with("ProvisioningFailed: ")) << name;
    EXPECT_EQ(cluster.claim_says(name), " ") << name;
  }
  EXPECT_TRUE(
      cluster.told("external")[0].starts_with("ExternalProvisioning: Waiting for a volume"));
}

TEST(Storage, AnEphemeralVolumeGetsAClaimThatGoesWithItsPod) {
  Cluster cluster;
  cluster.pod("p", R"({"name":"scratch","ephemeral":{"volumeClaimTemplate":{
      "metadata":{"labels":{"a":"b"}},"spec":{"storageClassName":"now",
      "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}})");
  cluster.settle();
  const json::value claim = cluster.get(claim_resource(), "p-scratch");
  EXPECT_TRUE(api::bound(claim));
  EXPECT_EQ(api::label(claim, "a"), "b");
  EXPECT_TRUE(api::controlled_by(claim, api::uid(cluster.get(pod_resource(), "p"))));
  cluster.remove(pod_resource(), "p");
  cluster.settle();
  EXPECT_EQ(cluster.claim_says("p-scratch"), "gone");
}

// The five laws, for a plan over whole collections: the controller's part is played by plan_storage
// on what is listed, at once or late, and may be cut after any of its writes.
class Life {
 public:
  Life(std::uint64_t seed, std::size_t cut, bool stale) : random_(seed), cut_(cut), stale_(stale) {
    server.transactional = false;
    server.refuse = [this](const client::Write&) -> std::optional<Error> {
      if (!controlling_ || writes_++ != cut_) return std::nullopt;
      dead_ = true;
      return Error{.code = Code::kInternal, .message = "cut"};
    };
  }

  // What is wrong, or nothing.
  std::optional<std::string> go() {
    for (int step = 0; step < 40; ++step) {
      happen(step);
      const World now = observe();
      // One that sees the world late acts on what it saw before.
      if (auto broken = act(stale_ && step > 0 ? before_ : now)) return broken;
      before_ = now;
    }
    for (int round = 0; round < 12; ++round) {
      schedule_and_reclaim();
      if (auto broken = act(observe())) return broken;
    }
    const World world = observe();
    for (const control::Batch& batch : plan_storage(world, options_).batches) {
      if (!batch.writes.empty()) return "idempotent: there is still something to do";
    }
    return wrong(world);
  }
  std::size_t writes() const { return writes_; }

  env::sim::Clock clock_ = env::sim::Clock();
  control::testing::MemoryServer server{clock_};

 private:
  World observe() {
    Books books;
    const std::vector<api::Resource> watched = Books::watched();
    for (std::size_t i = 0; i < watched.size(); ++i) {
      for (const Object& object : server.list(watched[i], "", {})->items) {
        books.changed(i, nullptr, object);
      }
    }
    return books.world();
  }

  std::optional<std::string> act(const World& world) {
    const control::GlobalPlan plan = plan_storage(world, options_);
    const control::GlobalPlan again = plan_storage(world, options_);
    if (plan.batches.size() != again.batches.size()) return "idempotent: two plans differ";
    controlling_ = true;
    for (const control::Batch& batch : plan.batches) {
      for (const client::Write& write : batch.writes) {
        const std::string& on = write.resource.plural;
        if (on != "persistentvolumes" && on != "persistentvolumeclaims") {
          return "ownership: writes " + on;
        }
        if (write.verb == client::Verb::kDelete) return "ownership: deletes " + write.name;
      }
      if (!dead_) server.submit(batch.writes, [](const auto&) {});
    }
    dead_ = false;  // and it starts again
    controlling_ = false;
    return std::nullopt;
  }

  void write(client::Write w) { (void)server.write(w); }

  void happen(int step) {
    const std::string n = std::to_string(random_.below(4));
    const json::object size{{"requests", {{"storage", n == "0" ? "3Gi" : "1Gi"}}}};
    switch (random_.below(7)) {
      case 0:
      case 1:
        return write(
            {.resource = claim_resource(),
             .ns = "ns",
             .body = json::object{
                 {"metadata",
                  {{"name", "c" + n}, {"finalizers", json::array{"kubernetes.io/pvc-protection"}}}},
                 {"spec",
                  {{"accessModes", json::array{"ReadWriteOnce"}},
                   {"resources", size},
                   {"storageClassName", n == "1" ? "" : "standard"}}}}});
      case 2:
        return write({.resource = pod_resource(),
                      .ns = "ns",
                      .body = json::object{
                          {"metadata", {{"name", "p" + n}}},
                          {"spec",
                           {{"volumes", json::array{json::object{{"name", "v"},
                                                                 {"persistentVolumeClaim",
                                                                  {{"claimName", "c" + n}}}}}}}}}});
      case 3:
        return write({.resource = volume_resource(),
                      .body = json::object{{"metadata", {{"name", "static" + n}}},
                                           {"spec",
                                            {{"accessModes", json::array{"ReadWriteOnce"}},
                                             {"capacity", {{"storage", "2Gi"}}},
                                             {"persistentVolumeReclaimPolicy", "Retain"}}}}});
      case 4:
        return write({.verb = client::Verb::kDelete,
                      .resource = pod_resource(),
                      .ns = "ns",
                      .name = "p" + n,
                      .body = json::object{{"gracePeriodSeconds", 0}}});
      case 5:
        return write({.verb = client::Verb::kDelete,
                      .resource = claim_resource(),
                      .ns = "ns",
                      .name = "c" + n,
                      .body = json::object{}});
      default:
        if (step % 2 == 0) write(default_class());
        schedule_and_reclaim();
    }
  }

  // The scheduler and the node, as far as they matter here.
  void schedule_and_reclaim() {
    for (const Object& pod : server.list(pod_resource(), "", {})->items) {
      if (!json::get_string(*pod, {"spec", "nodeName"}).empty()) continue;
      const std::string name = api::claims_of(*pod)[0].claim;
      const auto claim = server.get(claim_resource(), "ns", name);
      if (!claim || api::deleting(*claim)) continue;
      json::value body = json::object{{"spec", {{"nodeName", "n1"}}}};
      client::Write w{.verb = client::Verb::kMergePatch,
                      .resource = pod_resource(),
                      .ns = "ns",
                      .name = std::string(api::name(*pod)),
                      .body = std::move(body)};
      if (!api::bound(*claim)) {
        w.resource = claim_resource();
        w.name = name;
        w.body = json::object{{"metadata", {{"annotations", {{api::kSelectedNode, "n1"}}}}}};
      }
      write(std::move(w));
    }
    for (const Object& volume : server.list(volume_resource(), "", {})->items) {
      const bool provisioned = !api::annotation(*volume, api::kProvisionedBy).empty();
      const std::string_view phase = json::get_string(*volume, {"status", "phase"});
      if (!provisioned || phase != "Released") continue;
      const std::string name(api::name(*volume));
      const auto claim = server.get(claim_resource(), "ns",
                                    json::get_string(*volume, {"spec", "claimRef", "name"}));
      if (claim && api::uid(*claim) == json::get_string(*volume, {"spec", "claimRef", "uid"})) {
        continue;
      }
      write({.verb = client::Verb::kDelete,
             .resource = volume_resource(),
             .name = name,
             .body = json::object{}});
      write({.verb = client::Verb::kMergePatch,
             .resource = volume_resource(),
             .name = name,
             .body = json::object{
                 {"metadata", {{"finalizers", json::array{"kubernetes.io/pv-protection"}}}}}});
    }
  }

  std::optional<std::string> wrong(const World& world) {
    for (const auto& [name, claim] : world.claims) {
      const bool used = world.users.contains(name);
      const std::string_view phase = json::get_string(*claim, {"status", "phase"});
      if (phase == "Lost") return name.second + " lost its volume, which nobody deleted";
      const bool standard =
          api::storage_class(*claim) == "standard" && world.storage_class("standard") != nullptr;
      if (used && standard && !api::deleting(*claim) && phase != "Bound") {
        return name.second + " is used and not bound";
      }
      if (phase != "Bound") continue;
      const Object volume = world.volume(json::get_string(*claim, {"spec", "volumeName"}));
      if (volume == nullptr ||
          json::get_string(*volume, {"spec", "claimRef", "uid"}) != api::uid(*claim) ||
          json::get_string(*volume, {"status", "phase"}) != "Bound") {
        return name.second + " and its volume do not agree";
      }
    }
    for (const auto& [name, volume] : world.volumes) {
      const std::string_view phase = json::get_string(*volume, {"status", "phase"});
      const bool provisioned = !api::annotation(*volume, api::kProvisionedBy).empty();
      if (provisioned && phase != "Bound")
        return name.second + " is left over, " + std::string(phase);
      if (phase.empty()) return name.second + " has no phase";
    }
    return std::nullopt;
  }

  Random random_;
  const std::size_t cut_;
  const bool stale_;
  const StorageOptions options_{.folder = "/data/volumes"};
  World before_ = {};
  bool controlling_ = false;
  bool dead_ = false;
  std::size_t writes_ = 0;
};

constexpr std::size_t kNoCut = static_cast<std::size_t>(-1);

TEST(Storage, KeepsTheFiveLaws) {
  std::size_t writes = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Life plain(seed, kNoCut, false);
    if (const auto broken = plain.go()) ADD_FAILURE() << "seed " << seed << ": " << *broken;
    writes += plain.writes();
    Life late(seed, kNoCut, true);
    if (const auto broken = late.go()) ADD_FAILURE() << "late, seed " << seed << ": " << *broken;
    for (std::size_t cut = 0; cut < plain.writes(); ++cut) {
      Life life(seed, cut, false);
      if (const auto broken = life.go()) {
        ADD_FAILURE() << "cut after " << cut << ", seed " << seed << ": " << *broken;
      }
    }
  }
  EXPECT_GT(writes, 300U) << "too little happened to show anything";
}

}  // namespace
}  // namespace skiff::storage
