#include "features/training/feature.h"

#include <gtest/gtest.h>

#include <set>

#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

TEST(Feature, ServesBothKinds) {
  const Feature feature = make();
  std::set<std::string> keys;
  for (const api::Kind& kind : feature.kinds) {
    keys.insert(kind.resource.key());
    EXPECT_EQ(kind.resource.api_version(), "kubeflow.org/v1");
    EXPECT_TRUE(kind.resource.namespaced);
    EXPECT_TRUE(kind.has_status);
    EXPECT_FALSE(kind.unconditional_update);
    ASSERT_EQ(kind.columns.size(), 2u);
    EXPECT_EQ(kind.columns[0].name, "State");
    EXPECT_EQ(kind.columns[0].json_path, ".status.conditions[-1:].type");
    EXPECT_EQ(kind.columns[1].type, "date");
    EXPECT_EQ(kind.set_defaults, nullptr) << "what is stored stays as it was written";
  }
  EXPECT_EQ(keys, (std::set<std::string>{"tfjobs.kubeflow.org", "pytorchjobs.kubeflow.org"}));
}

TEST(Feature, GivesEveryKindASchema) {
  const Feature feature = make();
  ASSERT_EQ(feature.schemas.size(), feature.kinds.size());
  for (std::size_t i = 0; i < feature.kinds.size(); ++i) {
    EXPECT_EQ(feature.schemas[i].first, feature.kinds[i].schema);
    const schema::Schema& whole = feature.schemas[i].second;
    ASSERT_NE(whole.property("spec"), nullptr);
    ASSERT_NE(whole.property("status"), nullptr);
    const schema::Schema* run = whole.property("spec")->property("runPolicy");
    ASSERT_NE(run, nullptr);
    EXPECT_EQ(run->property("backoffLimit")->minimum, 0.0);
    EXPECT_NE(whole.property("status")->property("replicaHistory"), nullptr)
        << "what a job remembers must not be pruned";
    EXPECT_NE(whole.property("status")->property("restarts"), nullptr);
  }
  EXPECT_EQ(feature.schemas[0].first, "org.kubeflow.v1.TFJob");
}

TEST(Feature, ChecksEachKindByItsOwnRules) {
  const Feature feature = make();
  const json::value tf = testing::tfjob().role("Worker", 1).build();
  const json::value torch = testing::torchjob().role("Worker", 1).build();
  for (const api::Kind& kind : feature.kinds) {
    const bool is_tf = kind.resource.kind == "TFJob";
    EXPECT_TRUE(kind.validate(is_tf ? tf : torch, {}).empty());
    EXPECT_FALSE(kind.validate(is_tf ? torch : tf, {}).empty());
  }
}

TEST(Feature, RunsAControllerForEachKind) {
  const Feature feature = make();
  ASSERT_EQ(feature.controllers.size(), 2u);
  EXPECT_EQ(feature.controllers[0].name, "tfjob-controller");
  EXPECT_EQ(feature.controllers[1].name, "pytorchjob-controller");
  for (const control::Controller& controller : feature.controllers) {
    ASSERT_EQ(controller.owned.size(), 2u);
    EXPECT_EQ(controller.owned[0].plural, "pods");
    EXPECT_EQ(controller.owned[1].plural, "services");
    const bool is_tf = controller.root.kind == "TFJob";
    const control::Observed observed{
        .root = testing::share(is_tf ? testing::tfjob().role("Worker", 2).build()
                                     : testing::torchjob().role("Worker", 2).build()),
        .owned = {{}, {}}};
    const control::Plan plan = controller.plan(observed, Time{});
    EXPECT_EQ(plan.writes.size(), 4u) << "two pods and two services";
    EXPECT_TRUE(plan.status.has_value());
  }
}

}  // namespace
}  // namespace skiff::training
