// A rule of a kind that throws: the write is refused, the server lives on.
#include <gtest/gtest.h>

#include <stdexcept>

#include "api/builtin.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

const api::Resource kMapsResource = {.version = "v1", .plural = "configmaps", .kind = "ConfigMap"};

// ConfigMaps whose rules take it for granted that there is a word in them.
std::vector<api::Kind> careless_kinds() {
  std::vector<api::Kind> kinds = api::builtin_kinds();
  for (api::Kind& kind : kinds) {
    if (kind.resource.plural != "configmaps") continue;
    kind.validate = [](const json::value& object, const api::Admission&) -> std::vector<Cause> {
      if (object.at("data").at("word").as_string().empty()) return {};
      return {};
    };
  }
  return kinds;
}

client::Write create(std::string name, json::object data) {
  client::Write write{.resource = kMapsResource, .ns = "default"};
  write.body = json::object{{"apiVersion", "v1"},
                            {"kind", "ConfigMap"},
                            {"metadata", {{"name", name}}},
                            {"data", std::move(data)}};
  return write;
}

TEST(Guard, a_client_in_the_process_hears_an_error_where_a_rule_throws) {
  World world({}, careless_kinds());
  const auto before = world.store->revision();
  const auto answers = world.server->transact(
      {create("a", {{"word", "x"}}), create("b", {{"other", "x"}}), create("c", {{"word", "x"}})});
  ASSERT_EQ(answers.size(), 2u) << "the last one tried is the one that failed";
  ASSERT_FALSE(answers[1]);
  EXPECT_TRUE(answers[1].error().message.starts_with("a bug in Skiff: "))
      << answers[1].error().message;
  EXPECT_FALSE(answers[0]);
  EXPECT_EQ(world.store->revision(), before) << "all or nothing, as for any other failure";
  const auto again = world.server->transact({create("a", {{"word", "x"}})});
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0]) << again[0].error().message;
}

}  // namespace
}  // namespace skiff::apiserver
