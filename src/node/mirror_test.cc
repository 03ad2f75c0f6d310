#include "node/mirror.h"

#include <gtest/gtest.h>

#include "node/testing/memory_client.h"

namespace skiff::node {
namespace {

const api::Resource kMirroredMaps{.version = "v1", .plural = "configmaps", .kind = "ConfigMap"};

class MirrorTest : public ::testing::Test {
 protected:
  void create(std::string_view name) {
    client::Write write{.resource = kMirroredMaps, .ns = "default"};
    write.body =
        json::object{{"metadata", {{"name", json::string(name)}, {"namespace", "default"}}}};
    ASSERT_TRUE(client_.write(write));
  }
  void remove(const std::string& name) {
    client::Write write{
        .verb = client::Verb::kDelete, .resource = kMirroredMaps, .ns = "default", .name = name};
    write.body = json::object();
    ASSERT_TRUE(client_.write(write));
  }
  // The names of what poll() tells, a removal with a minus.
  static std::vector<std::string> names(Mirror& mirror) {
    auto events = mirror.poll();
    if (!events && events.error().code == Code::kExpired) events = mirror.poll();
    std::vector<std::string> out;
    EXPECT_TRUE(events) << events.error().message;
    if (!events) return out;
    for (const client::Event& event : *events) {
      const bool gone = event.type == client::EventType::kDeleted;
      out.push_back((gone ? "-" : "") + std::string(api::name(*event.object)));
    }
    return out;
  }

  using Names = std::vector<std::string>;
  MemoryClient client_;
};

TEST_F(MirrorTest, KeepsObjectsAndTellsTheDifferencesAfterAGap) {
  create("a");
  create("b");
  Mirror mirror(client_, kMirroredMaps, [] {});
  EXPECT_EQ(names(mirror), (Names{"a", "b"}));
  EXPECT_EQ(mirror.objects().size(), 2U);
  remove("a");
  create("c");
  client_.forget_history();
  EXPECT_EQ(names(mirror), (Names{"-a", "c"}));
  EXPECT_EQ(mirror.objects().size(), 2U);
  EXPECT_FALSE(mirror.take_gap());
}

TEST_F(MirrorTest, KeepsOfAnObjectWhatItIsToldToAndTellsAllOfIt) {
  create("a");
  Mirror mirror(client_, kMirroredMaps, [] {});
  mirror.keep_only([](const Object& object) {
    json::value out = *object;
    out.as_object().erase("data");
    return std::make_shared<const json::value>(std::move(out));
  });
  EXPECT_EQ(names(mirror), Names{"a"});
  client::Write write{.resource = kMirroredMaps, .ns = "default"};
  write.body =
      json::object{{"metadata", {{"name", "b"}, {"namespace", "default"}}}, {"data", {{"k", "v"}}}};
  ASSERT_TRUE(client_.write(write));
  const auto events = mirror.poll();
  ASSERT_TRUE(events);
  EXPECT_EQ(json::get_string(*events->at(0).object, {"data", "k"}), "v");
  EXPECT_EQ(json::find(*mirror.objects().at({"default", "b"}), {"data"}), nullptr);
  client_.forget_history();
  EXPECT_EQ(names(mirror), Names()) << "what is kept of them is enough to see that";
  EXPECT_EQ(json::find(*mirror.objects().at({"default", "b"}), {"data"}), nullptr);
}

TEST_F(MirrorTest, OneThatKeepsNothingTellsWhatChangesFromItsBeginningOn) {
  create("old");
  Mirror mirror(client_, kMirroredMaps, [] {}, Mirror::Keep::kNothing);
  EXPECT_EQ(names(mirror), Names());
  create("new");
  remove("old");
  EXPECT_EQ(names(mirror), (Names{"new", "-old"}));
  EXPECT_TRUE(mirror.objects().empty());
  EXPECT_FALSE(mirror.take_gap()) << "the beginning is no gap";
}

TEST_F(MirrorTest, OneThatKeepsNothingSaysThatSomethingWentBy) {
  Mirror mirror(client_, kMirroredMaps, [] {}, Mirror::Keep::kNothing);
  EXPECT_EQ(names(mirror), Names());
  create("unseen");
  client_.forget_history();
  EXPECT_EQ(names(mirror), Names());
  EXPECT_TRUE(mirror.take_gap());
  EXPECT_FALSE(mirror.take_gap()) << "told once";
  create("seen");
  EXPECT_EQ(names(mirror), (Names{"seen"}));
}

}  // namespace
}  // namespace skiff::node
