#include "apiserver/upkeep/garbage.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

const std::string kGarbageMapsPath = "/api/v1/namespaces/default/configmaps";

std::string make(World& world, std::string_view name, std::string_view owner_uid = {},
                 bool blocks = true) {
  std::string owners;
  if (!owner_uid.empty()) {
    owners = fmt::format(R"(,"ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"o",)"
                         R"("uid":"{}","blockOwnerDeletion":{}}}])",
                         owner_uid, blocks);
  }
  const auto [status, object] = world.call(
      "POST", kGarbageMapsPath, fmt::format(R"({{"metadata":{{"name":"{}"{}}}}})", name, owners));
  EXPECT_EQ(status, 201) << world.last.body;
  return std::string(api::uid(object));
}

int status_of(World& world, std::string_view name) {
  return world.call("GET", kGarbageMapsPath + "/" + std::string(name)).first;
}

TEST(Garbage, GoesWithItsOwnerAndTheirDependents) {
  World world;
  const std::string owner = make(world, "owner");
  const std::string child = make(world, "child", owner);
  make(world, "grandchild", child);
  make(world, "free");
  world.collect();
  EXPECT_EQ(status_of(world, "grandchild"), 200);
  world.call("DELETE", kGarbageMapsPath + "/owner");
  world.collect();
  EXPECT_EQ(status_of(world, "child"), 404);
  EXPECT_EQ(status_of(world, "grandchild"), 404);
  EXPECT_EQ(status_of(world, "free"), 200);
}

TEST(Garbage, GoesWithItsOwnerAlsoWhereItHasChangedSince) {
  World world;
  const std::string owner = make(world, "owner");
  make(world, "child", owner);
  world.collect();
  EXPECT_EQ(world
                .call("PATCH", kGarbageMapsPath + "/child", R"({"data":{"a":"b"}})",
                      "application/merge-patch+json")
                .first,
            200);
  world.collect();
  EXPECT_EQ(status_of(world, "child"), 200);
  world.call("DELETE", kGarbageMapsPath + "/owner");
  world.collect();
  EXPECT_EQ(status_of(world, "child"), 404);
}

TEST(Garbage, IsWhatRefersToAnOwnerThatNeverWas) {
  World world;
  make(world, "child", "no-such-uid");
  world.collect();
  EXPECT_EQ(status_of(world, "child"), 404);
}

TEST(Garbage, IsKeptByALivingOwner) {
  World world;
  const std::string a = make(world, "a"), b = make(world, "b");
  world.call("POST", kGarbageMapsPath,
             fmt::format(R"({{"metadata":{{"name":"child","ownerReferences":[)"
                         R"({{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"{}"}},)"
                         R"({{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"{}"}}]}}}})",
                         a, b));
  world.call("DELETE", kGarbageMapsPath + "/a");
  world.collect();
  const auto [status, child] = world.call("GET", kGarbageMapsPath + "/child");
  EXPECT_EQ(status, 200);
  EXPECT_EQ(json::get_array(child, {"metadata", "ownerReferences"}).size(), 1u);
}

TEST(Garbage, InACircleGoesWhole) {
  World world;
  const std::string a = make(world, "a"), b = make(world, "b", a), c = make(world, "c", b);
  world.call(
      "PATCH", kGarbageMapsPath + "/a",
      fmt::format(R"({{"metadata":{{"ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap",)"
                  R"("name":"c","uid":"{}","blockOwnerDeletion":true}}]}}}})",
                  c),
      "application/merge-patch+json");
  world.collect();
  EXPECT_EQ(status_of(world, "c"), 200);
  world.call("DELETE", kGarbageMapsPath + "/a?propagationPolicy=Foreground");
  world.collect();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(status_of(world, name), 404) << name;
}

TEST(Garbage, InTheForegroundGoesBeforeItsOwner) {
  World world;
  const std::string owner = make(world, "owner");
  make(world, "child", owner);
  world.call("PATCH", kGarbageMapsPath + "/child", R"({"metadata":{"finalizers":["x/y"]}})",
             "application/merge-patch+json");
  world.call("DELETE", kGarbageMapsPath + "/owner", R"({"propagationPolicy":"Foreground"})");
  world.collect();
  EXPECT_EQ(status_of(world, "owner"), 200);
  EXPECT_TRUE(api::deleting(world.call("GET", kGarbageMapsPath + "/child").second));
  world.call("PATCH", kGarbageMapsPath + "/child", R"({"metadata":{"finalizers":null}})",
             "application/merge-patch+json");
  world.collect();
  EXPECT_EQ(status_of(world, "child"), 404);
  EXPECT_EQ(status_of(world, "owner"), 404);
}

TEST(Garbage, InTheForegroundIsNotWaitedForOnceItLetsGo) {
  const std::string_view patches[] = {
      R"({"metadata":{"ownerReferences":null}})",
      R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o",)"
      R"("uid":"UID","blockOwnerDeletion":false}]}})"};
  for (std::string_view patch : patches) {
    SCOPED_TRACE(patch);
    World world;
    const std::string owner = make(world, "owner");
    make(world, "child", owner);
    world.call("PATCH", kGarbageMapsPath + "/child", R"({"metadata":{"finalizers":["x/y"]}})",
               "application/merge-patch+json");
    world.call("DELETE", kGarbageMapsPath + "/owner", R"({"propagationPolicy":"Foreground"})");
    world.collect();
    EXPECT_EQ(status_of(world, "owner"), 200);
    std::string body(patch);
    if (const auto at = body.find("UID"); at != std::string::npos) body.replace(at, 3, owner);
    EXPECT_EQ(world.call("PATCH", kGarbageMapsPath + "/child", body, "application/merge-patch+json")
                  .first,
              200);
    world.collect();
    EXPECT_EQ(status_of(world, "owner"), 404);
  }
}

TEST(Garbage, IsNotWhatAKindThatIsNotServedOwns) {
  World world;
  EXPECT_EQ(world
                .call("POST", kGarbageMapsPath,
                      R"({"metadata":{"name":"child","ownerReferences":[{"apiVersion":)"
                      R"("fleet.example.org/v1","kind":"Harbour","name":"d","uid":"u-1"}]}})")
                .first,
            201);
  world.collect();
  EXPECT_EQ(status_of(world, "child"), 200);
}

TEST(Garbage, GoesWithAnOwnerWhoseDefinitionGoes) {
  World world;
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  world.call("POST", definitions, std::string(kBoats));
  const json::value boat = world
                               .call("POST", "/apis/sea.example.org/v1/namespaces/default/boats",
                                     R"({"apiVersion":"sea.example.org/v1","kind":"Boat",)"
                                     R"("metadata":{"name":"b"},"spec":{"crew":1}})")
                               .second;
  const std::string owners =
      fmt::format(R"(,"ownerReferences":[{{"apiVersion":"sea.example.org/v1","kind":"Boat",)"
                  R"("name":"b","uid":"{}"}}])",
                  api::uid(boat));
  ASSERT_EQ(world.call("POST", World::pods(), world.pod("sailor", owners)).first, 201);
  world.collect();
  EXPECT_EQ(world.call("GET", World::pods("/sailor")).first, 200);
  world.call("DELETE", definitions + "/boats.sea.example.org");
  world.collect();
  EXPECT_EQ(world.call("GET", World::pods("/sailor")).first, 404);
}

TEST(Garbage, CanBeOrphanedInstead) {
  World world;
  const std::string owner = make(world, "owner");
  make(world, "child", owner);
  world.call("DELETE", kGarbageMapsPath + "/owner", R"({"propagationPolicy":"Orphan"})");
  world.collect();
  EXPECT_EQ(status_of(world, "owner"), 404);
  const auto [status, child] = world.call("GET", kGarbageMapsPath + "/child");
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(json::get_array(child, {"metadata", "ownerReferences"}).empty());
  EXPECT_FALSE(json::serialize(child).contains("f:ownerReferences")) << "nobody owns what is gone";
}

// A collector of its own over the world's store, and somebody who is quicker than a commit of it.
struct Race {
  World world;
  Writes writes{world.registry, world.clock, 9};
  std::shared_ptr<const KindTable> kinds = std::make_shared<const KindTable>(api::builtin_kinds());
  std::function<void()> before_commit;  // once
  Collector collector{*world.store, world.clock, writes, [this] { return kinds; },
                      [this](Transaction& txn, store::Sync sync) -> Result<void> {
                        if (const auto quicker = std::exchange(before_commit, {})) quicker();
                        SKIFF_TRY(txn.commit(sync));
                        return {};
                      }};

  void patch(std::string_view name, std::string_view body) {
    const auto answer = world.call("PATCH", kGarbageMapsPath + "/" + std::string(name),
                                   std::string(body), "application/merge-patch+json");
    EXPECT_EQ(answer.first, 200) << world.last.body;
  }
  void collect() {
    for (int pass = 0; pass < 10; ++pass) collector.pass();
    world.flush();
    EXPECT_FALSE(before_commit) << "nobody was raced";
  }
};

TEST(Garbage, IsNotWhatChangesWhileItIsOrphaned) {
  Race race;
  const std::string owner = make(race.world, "owner");
  make(race.world, "child", owner);
  race.collector.pass();
  race.world.call("DELETE", kGarbageMapsPath + "/owner", R"({"propagationPolicy":"Orphan"})");
  race.before_commit = [&] { race.patch("child", R"({"data":{"a":"b"}})"); };
  race.collect();
  EXPECT_EQ(status_of(race.world, "owner"), 404);
  const auto [status, child] = race.world.call("GET", kGarbageMapsPath + "/child");
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(json::get_array(child, {"metadata", "ownerReferences"}).empty());
}

TEST(Garbage, InTheForegroundGoesAlsoWhereItChangesMeanwhile) {
  Race race;
  const std::string owner = make(race.world, "owner");
  make(race.world, "child", owner);
  race.collector.pass();
  race.world.call("DELETE", kGarbageMapsPath + "/owner", R"({"propagationPolicy":"Foreground"})");
  race.before_commit = [&] { race.patch("child", R"({"data":{"a":"b"}})"); };
  race.collect();
  EXPECT_EQ(status_of(race.world, "child"), 404);
  EXPECT_EQ(status_of(race.world, "owner"), 404);
}

TEST(Garbage, InTheForegroundIsNotWhatHasLetGoSinceItWasLookedAt) {
  Race race;
  const std::string owner = make(race.world, "owner");
  make(race.world, "a", owner);
  make(race.world, "b", owner);
  race.collector.pass();
  race.world.call("DELETE", kGarbageMapsPath + "/owner", R"({"propagationPolicy":"Foreground"})");
  race.before_commit = [&] { race.patch("b", R"({"metadata":{"ownerReferences":null}})"); };
  race.collect();
  EXPECT_EQ(status_of(race.world, "a"), 404);
  EXPECT_EQ(status_of(race.world, "b"), 200);
  EXPECT_EQ(status_of(race.world, "owner"), 404);
}

TEST(Garbage, ThatABugIsMetWithHoldsUpNoOther) {
  Race race;
  make(race.world, "a", "no-such-uid");
  make(race.world, "b", "no-such-uid");
  race.before_commit = [] { throw std::logic_error("never thought of that"); };
  race.collect();
  EXPECT_EQ(status_of(race.world, "a"), 200) << "not tried for ever";
  EXPECT_EQ(status_of(race.world, "b"), 404);
  race.patch("a", R"({"data":{"a":"b"}})");
  race.collect();
  EXPECT_EQ(status_of(race.world, "a"), 404) << "looked at again when it changes";
}

TEST(Namespaces, AreEmptiedBeforeTheyGo) {
  World world;
  world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"harbour"}})");
  world.call("POST", "/api/v1/namespaces/harbour/configmaps",
             R"({"metadata":{"name":"held","finalizers":["x/y"]}})");
  world.call("POST", "/api/v1/namespaces/harbour/pods", world.pod("p"));
  const auto [status, space] =
      world.call("DELETE", "/api/v1/namespaces/harbour", R"({"propagationPolicy":"Background"})");
  EXPECT_EQ(status, 200);
  EXPECT_EQ(json::get_string(space, {"status", "phase"}), "Terminating");
  const auto [refused, answer] = world.call("POST", "/api/v1/namespaces/harbour/configmaps",
                                            R"({"metadata":{"name":"late"}})");
  EXPECT_EQ(refused, 403);
  EXPECT_NE(world.last.body.find("NamespaceTerminating"), std::string::npos);
  world.collect();
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/harbour/pods/p").first, 404);
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/harbour").first, 200) << "one object is held";
  world.call("PATCH", "/api/v1/namespaces/harbour/configmaps/held",
             R"({"metadata":{"finalizers":null}})", "application/merge-patch+json");
  world.collect();
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/harbour").first, 404);
}

TEST(Events, ExpireAfterAnHour) {
  World world;
  const std::string events = "/api/v1/namespaces/default/events";
  world.call("POST", events,
             R"({"metadata":{"name":"e"},"involvedObject":{"name":"p","namespace":"default"}})");
  world.clock.advance(std::chrono::minutes(59));
  world.collect();
  EXPECT_EQ(world.call("GET", events + "/e").first, 200);
  world.clock.advance(std::chrono::minutes(2));
  world.collect();
  EXPECT_EQ(world.call("GET", events + "/e").first, 404);
}

TEST(Events, ThatCouldNotBeRemovedAreTriedAgain) {
  World world;
  const std::string events = "/api/v1/namespaces/default/events";
  world.call("POST", events,
             R"({"metadata":{"name":"e"},"involvedObject":{"name":"p","namespace":"default"}})");
  world.collect();
  world.disk->fail("full");
  world.server->handle(world.request("POST", kGarbageMapsPath, R"({"metadata":{"name":"a"}})"));
  EXPECT_FALSE(world.store->flush());
  world.clock.advance(std::chrono::minutes(61));
  EXPECT_FALSE(world.server->collect_garbage()) << "the disk refuses";
  world.disk->heal();
  world.flush();
  world.collect();
  EXPECT_EQ(world.call("GET", events + "/e").first, 404);
}

// An event of the namespace, with more in its metadata.
void tell(World& world, std::string_view ns, std::string_view name, std::string_view more = {}) {
  const std::string body = fmt::format(
      R"({{"metadata":{{"name":"{}"{}}},"involvedObject":{{"name":"p","namespace":"{}"}}}})", name,
      more, ns);
  EXPECT_EQ(world.call("POST", fmt::format("/api/v1/namespaces/{}/events", ns), body).first, 201);
}

TEST(Events, LiveOnForAnHourAfterTheyWereSeenAgain) {
  World world;
  const std::string event = "/api/v1/namespaces/default/events/e";
  tell(world, "default", "e");
  world.collect();
  world.clock.advance(std::chrono::minutes(40));
  EXPECT_EQ(
      world
          .call("PATCH", event,
                fmt::format(R"({{"count":2,"lastTimestamp":"{}"}})", rfc3339(world.clock.now())),
                "application/merge-patch+json")
          .first,
      200);
  world.collect();
  world.clock.advance(std::chrono::minutes(40));
  world.collect();
  EXPECT_EQ(world.call("GET", event).first, 200) << "the older expiry is of an entry that is gone";
  world.clock.advance(std::chrono::minutes(21));
  world.collect();
  EXPECT_EQ(world.call("GET", event).first, 404);
}

TEST(Events, GoWithTheirNamespace) {
  World world;
  world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"harbour"}})");
  for (int i = 0; i < 3; ++i) tell(world, "harbour", "e-" + std::to_string(i));
  tell(world, "harbour", "held", R"(,"finalizers":["x/y"])");
  tell(world, "default", "other");
  world.collect();
  world.call("DELETE", "/api/v1/namespaces/harbour");
  world.collect();
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/harbour/events/e-1").first, 404);
  const auto [status, space] = world.call("GET", "/api/v1/namespaces/harbour");
  EXPECT_EQ(status, 200) << "one is held";
  EXPECT_TRUE(json::serialize(space).contains("events. has 1 resource instances"));
  world.call("PATCH", "/api/v1/namespaces/harbour/events/held",
             R"({"metadata":{"finalizers":null}})", "application/merge-patch+json");
  world.collect();
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/harbour").first, 404);
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/default/events/other").first, 200);
}

TEST(Events, ThatADiskKeepsHoldTheirNamespace) {
  World world;
  world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"harbour"}})");
  tell(world, "harbour", "e");
  world.collect();
  world.call("DELETE", "/api/v1/namespaces/harbour");
  world.flush();
  world.disk->fail("full");
  world.server->handle(world.request("POST", kGarbageMapsPath, R"({"metadata":{"name":"a"}})"));
  EXPECT_FALSE(world.store->flush());
  EXPECT_FALSE(world.server->collect_garbage()) << "the disk refuses";
  world.disk->heal();
  world.flush();
  world.collect();
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/harbour").first, 404);
}

TEST(Events, MayHaveOwnersLikeAnythingElse) {
  World world;
  const std::string owner = make(world, "owner");
  tell(world, "default", "e");
  world.collect();
  const std::string event = "/api/v1/namespaces/default/events/e";
  EXPECT_EQ(world
                .call("PATCH", event,
                      fmt::format(R"({{"metadata":{{"ownerReferences":[{{"apiVersion":"v1",)"
                                  R"("kind":"ConfigMap","name":"owner","uid":"{}"}}]}}}})",
                                  owner),
                      "application/merge-patch+json")
                .first,
            200);
  world.collect();
  EXPECT_EQ(world.call("GET", event).first, 200);
  world.call("DELETE", kGarbageMapsPath + "/owner");
  world.collect();
  EXPECT_EQ(world.call("GET", event).first, 404);
}

}  // namespace
}  // namespace skiff::apiserver
