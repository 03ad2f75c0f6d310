#include "apiserver/upkeep/compaction.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

using std::chrono::seconds;

TEST(Compaction, ForgetsRevisionsThatAreFiveMinutesOld) {
  Compaction compaction;
  EXPECT_TRUE(compaction.due(seconds(0)));
  compaction.mark(seconds(0), 10);
  EXPECT_FALSE(compaction.due(seconds(149)));
  EXPECT_TRUE(compaction.due(seconds(150)));
  compaction.mark(seconds(150), 20);
  EXPECT_EQ(compaction.oldest(), 0u);
  compaction.mark(seconds(300), 30);
  EXPECT_EQ(compaction.oldest(), 10u);
  compaction.mark(seconds(450), 40);
  EXPECT_EQ(compaction.oldest(), 20u);
  // After a long sleep, all that was before.
  compaction.mark(seconds(5000), 50);
  EXPECT_EQ(compaction.oldest(), 40u);
}

TEST(Compaction, TellsWhatIsOldNewsOnceInAWhile) {
  Compaction compaction;
  EXPECT_FALSE(compaction.old_news(Compaction::kRecent - seconds(1), 5));
  EXPECT_EQ(compaction.old_news(Compaction::kRecent, 10), 0u);
  EXPECT_FALSE(compaction.old_news(Compaction::kRecent + seconds(4), 20));
  EXPECT_EQ(compaction.old_news(2 * Compaction::kRecent, 30), 10u);
  EXPECT_EQ(compaction.old_news(50 * Compaction::kRecent, 40), 30u) << "at least that old";
}

TEST(Compaction, OfWhatChangesMuchOnlyRecentStatesAreKnown) {
  World world;
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const auto write = [&](const std::string& verb, const std::string& path) {
    const std::string body = R"({"metadata":{"name":"m"},"data":{"a":")" +
                             std::string(512 * 1024, 'x') +
                             std::to_string(world.store->revision()) + "\"}}";
    ASSERT_LT(world.call(verb, path, body).first, 300);
    world.flush();
  };
  const auto list_at = [&](const std::string& resource, store::Revision after) {
    return world
        .call("GET",
              resource + "?resourceVersionMatch=Exact&resourceVersion=" + std::to_string(after))
        .first;
  };
  const store::Revision first = world.store->revision();
  write("POST", maps);
  for (int i = 0; i < 8; ++i) write("PUT", maps + "/m");
  world.clock.advance(Compaction::kRecent);
  world.server->tick();
  EXPECT_EQ(list_at(maps, first), 200) << "it is recent";
  const store::Revision late = world.store->revision();
  write("PUT", maps + "/m");
  world.clock.advance(Compaction::kRecent);
  world.server->tick();
  EXPECT_EQ(list_at(maps, first), 410);
  EXPECT_EQ(list_at(maps, late), 200);
  EXPECT_EQ(list_at(World::pods(), first), 200) << "where little changes, nothing is forgotten";
}

// Like Kubernetes' own spec about lists whose first revision has been compacted away.
TEST(Compaction, APageThatCameTooLateGoesOnInTheNewestState) {
  World world;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(world.call("POST", World::pods(), world.pod("p" + std::to_string(i))).first, 201);
  }
  world.server->tick();
  const auto [_, first] = world.call("GET", World::pods("?limit=2"));
  const std::string token(json::get_string(first, {"metadata", "continue"}));
  const std::string next = World::pods("?limit=2&continue=" + token);
  EXPECT_EQ(world.call("GET", next).first, 200);
  for (int i = 0; i < 3; ++i) {
    world.clock.advance(seconds(150));
    world.server->tick();
    world.flush();
  }
  const auto [status, refused] = world.call("GET", next);
  ASSERT_EQ(status, 410);
  EXPECT_EQ(json::get_string(refused, {"reason"}), "Expired");
  const std::string anew(json::get_string(refused, {"metadata", "continue"}));
  const auto [again, page] = world.call("GET", World::pods("?limit=2&continue=" + anew));
  ASSERT_EQ(again, 200);
  EXPECT_EQ(api::name(json::get_array(page, {"items"})[0]), "p2");
  EXPECT_EQ(json::get_int(page, {"metadata", "remainingItemCount"}), 2);
  // The server's own lease has moved the revision, though nobody wrote.
  EXPECT_NE(api::resource_version(page), api::resource_version(first));
}

TEST(Compaction, TheServerSaysThatItLives) {
  World world;
  world.server->tick();
  const std::string path =
      "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/apiserver-skiff";
  const auto [status, lease] = world.call("GET", path);
  ASSERT_EQ(status, 200);
  EXPECT_EQ(json::get_string(lease, {"metadata", "labels", "apiserver.kubernetes.io/identity"}),
            "kube-apiserver");
  world.clock.advance(seconds(10));
  world.server->tick();
  EXPECT_EQ(world.call("GET", path).second, lease);
  world.clock.advance(seconds(150));
  world.server->tick();
  EXPECT_NE(json::get_string(world.call("GET", path).second, {"spec", "renewTime"}),
            json::get_string(lease, {"spec", "renewTime"}));
}

}  // namespace
}  // namespace skiff::apiserver
