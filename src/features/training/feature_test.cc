#include "features/training/feature.h"

#include <gtest/gtest.h>

#include <set>

#include "features/training/kinds/kinds.h"
#include "features/training/kinds/xgboost/xgboost.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

TEST(Feature, ServesEveryKind) {
  const Feature feature = make();
  std::set<std::string> keys;
  for (const api::Kind& kind : feature.kinds) {
    keys.insert(kind.resource.key() + "/" + kind.resource.version);
    EXPECT_TRUE(kind.resource.namespaced);
    EXPECT_TRUE(kind.has_status);
    EXPECT_FALSE(kind.unconditional_update);
    ASSERT_EQ(kind.columns.size(), 6u);
    EXPECT_EQ(kind.columns[4].json_path, ".status.progress.percent");
    for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(kind.columns[i].priority, 1) << "-o wide only";
    EXPECT_EQ(kind.columns[0].name, "State");
    EXPECT_EQ(kind.columns[0].json_path, ".status.conditions[-1:].type");
    EXPECT_EQ(kind.columns[1].type, "date");
    EXPECT_EQ(kind.columns[2].name, "Queue");
    EXPECT_EQ(kind.columns[2].priority, 1) << "only with -o wide: upstream has no such column";
    EXPECT_EQ(kind.set_defaults, nullptr) << "what is stored stays as it was written";
  }
  EXPECT_EQ(keys, (std::set<std::string>{
                      "tfjobs.kubeflow.org/v1", "tfjobs.kubeflow.org/v1beta2",
                      "tfjobs.kubeflow.org/v1beta1", "tfjobs.kubeflow.org/v1alpha2",
                      "tfjobs.kubeflow.org/v1alpha1", "pytorchjobs.kubeflow.org/v1",
                      "pytorchjobs.kubeflow.org/v1beta2", "pytorchjobs.kubeflow.org/v1beta1",
                      "pytorchjobs.kubeflow.org/v1alpha2", "pytorchjobs.kubeflow.org/v1alpha1",
                      "xgboostjobs.kubeflow.org/v1", "jaxjobs.kubeflow.org/v1",
                      "paddlejobs.kubeflow.org/v1", "mpijobs.kubeflow.org/v2beta1",
                      "mpijobs.kubeflow.org/v1", "mpijobs.kubeflow.org/v1alpha2",
                      "mpijobs.kubeflow.org/v1alpha1"}));
}

TEST(Feature, GivesEveryKindASchema) {
  const Feature feature = make();
  ASSERT_EQ(feature.schemas.size(), feature.kinds.size());
  for (std::size_t i = 0; i < feature.kinds.size(); ++i) {
    EXPECT_EQ(feature.schemas[i].first, feature.kinds[i].schema);
    const schema::Schema& whole = feature.schemas[i].second;
    ASSERT_NE(whole.property("spec"), nullptr);
    ASSERT_NE(whole.property("status"), nullptr);
    if (feature.kinds[i].to_storage != nullptr) continue;  // an older version
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
  for (const api::Kind& kind : feature.kinds) {
    for (const JobKind* other : job_kinds()) {
      testing::JobBuilder job(*other);
      if (other == &xgboost()) job.role("Master", 1);
      if (other == &mpi()) job.role("Launcher", 1);
      const bool own = other->resource.kind == kind.resource.kind;
      EXPECT_EQ(kind.validate(job.role("Worker", 1).build(), {}).empty(), own)
          << kind.resource.kind << " judges " << other->resource.kind;
    }
  }
}

TEST(Feature, RunsAControllerForEachKind) {
  const Feature feature = make();
  ASSERT_EQ(feature.controllers.size(), job_kinds().size());
  for (std::size_t i = 0; i < feature.controllers.size(); ++i) {
    const control::Controller& controller = feature.controllers[i];
    const JobKind& kind = *job_kinds()[i];
    EXPECT_EQ(controller.name, kind.controller);
    ASSERT_EQ(controller.owned.size(), 2 + kind.companion_kinds.size());
    EXPECT_EQ(controller.owned[0].plural, "pods");
    EXPECT_EQ(controller.owned[1].plural, "services");
    const control::Observed observed{
        .root = testing::share(testing::JobBuilder(kind).role("Worker", 2).build()),
        .owned = {{}, {}}};
    const control::Plan plan = controller.plan(observed, Time{});
    EXPECT_EQ(plan.writes.size(), kind.companions == nullptr ? 4u : 7u)
        << "two pods and two services, or two pods and five companions";
    EXPECT_TRUE(plan.status.has_value());
  }
}

TEST(Feature, LetsWorkersBeScaledWhereTheFrameworkCan) {
  for (const api::Kind& kind : make().kinds) {
    const bool scales = kind.resource.kind != "TFJob" && kind.resource.kind != "XGBoostJob" &&
                        kind.resource.kind != "MPIJob" && kind.resource.version == "v1";
    ASSERT_EQ(kind.scale.has_value(), scales) << kind.resource.kind;
    if (kind.resource.kind != "PyTorchJob" || !scales) continue;
    EXPECT_EQ(kind.scale->spec, ".spec.pytorchReplicaSpecs.Worker.replicas");
    EXPECT_EQ(kind.scale->status, ".status.replicaStatuses.Worker.active");
    EXPECT_EQ(kind.scale->selector, ".status.replicaStatuses.Worker.selector");
  }
}

}  // namespace
}  // namespace skiff::training
