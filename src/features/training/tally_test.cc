#include "features/training/tally.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "features/training/engine/plan.h"
#include "features/training/kinds/kinds.h"
#include "features/training/testing/builders.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using testing::JobBuilder;
using testing::mpijob;
using testing::tfjob;
using testing::torchjob;

// The builders' jobs and pods are of noon.
const Time kTallyNoon = *parse_time("2026-11-15T12:00:00Z");

std::size_t place_of(const JobKind& kind) {
  return static_cast<std::size_t>(std::ranges::find(job_kinds(), &kind) - job_kinds().begin());
}
const std::size_t kPods = job_kinds().size();
const std::size_t kServices = kPods + 1;

struct Counted {
  Tally tally{kTallyNoon + std::chrono::milliseconds(900)};

  void appears(const JobKind& kind, const json::value& job) {
    tally.changed(place_of(kind), nullptr, &job);
  }
  void becomes(const JobKind& kind, const json::value& before, const json::value& after) {
    tally.changed(place_of(kind), &before, &after);
  }
  // The lines of one name, without it.
  std::string of(std::string_view name) const {
    std::string out;
    for (const std::string_view line : split(text = tally.text(), '\n')) {
      if (!line.starts_with(name)) continue;
      const std::string_view rest = line.substr(name.size());
      if (rest.starts_with('{') || rest.starts_with(' ')) out += std::string(rest) + ";";
    }
    return out;
  }
  mutable std::string text = {};
};

json::value with_status(json::value job, std::string_view type, bool value = true) {
  json::set(job, {"status", "conditions"},
            json::array{
                json::object{{"type", json::string(type)}, {"status", value ? "True" : "False"}}});
  return job;
}

json::value child(json::value object, const JobKind& kind) {
  json::set(object, {"metadata", "ownerReferences"},
            json::array{api::owner_reference(JobBuilder(kind).build())});
  return object;
}

TEST(Tally, WatchesEveryKindWithItsPodsAndServices) {
  const std::vector<api::Resource> watched = Tally::watched();
  ASSERT_EQ(watched.size(), job_kinds().size() + 2);
  for (const JobKind* kind : job_kinds()) EXPECT_EQ(watched[place_of(*kind)], kind->resource);
  EXPECT_EQ(watched[kPods], pod_resource());
  EXPECT_EQ(watched[kServices], service_resource());
}

TEST(Tally, CountsJobsByNamespaceAndFramework) {
  Counted counted;
  const json::value tf = tfjob().role("Worker", 1).build();
  json::value other = tf;
  json::set(other, {"metadata", "namespace"}, "other");
  counted.appears(tensorflow(), tf);
  counted.appears(tensorflow(), tf);
  counted.appears(tensorflow(), other);
  counted.appears(pytorch(), torchjob().role("Worker", 1).build());
  EXPECT_EQ(counted.of("training_operator_jobs_created_total"),
            R"({job_namespace="other",framework="tensorflow"} 1;)"
            R"({job_namespace="team",framework="pytorch"} 1;)"
            R"({job_namespace="team",framework="tensorflow"} 2;)");
  EXPECT_EQ(counted.of("tf_operator_jobs_created_total"), " 3;");
  EXPECT_EQ(counted.of("mpi_operator_jobs_created_total"), " 0;");
}

TEST(Tally, KnowsEveryFrameworkByUpstreamsWord) {
  Counted counted;
  for (const JobKind* kind : job_kinds()) counted.appears(*kind, JobBuilder(*kind).build());
  const std::string said = counted.of("training_operator_jobs_created_total");
  for (const char* word : {"tensorflow", "pytorch", "mpi", "xgboost", "paddle", "jax"}) {
    EXPECT_NE(said.find(fmt::format("framework=\"{}\"}} 1", word)), std::string::npos) << word;
  }
}

TEST(Tally, LeavesOutWhatIsOlderThanTheStart) {
  Counted counted;
  json::value old = tfjob().role("Worker", 1).build();
  json::set(old, {"metadata", "creationTimestamp"}, "2026-11-15T11:59:59Z");
  counted.appears(tensorflow(), with_status(old, "Succeeded"));
  EXPECT_EQ(counted.of("training_operator_jobs_created_total"), "");
  EXPECT_EQ(counted.of("training_operator_jobs_successful_total"), "");
  counted.tally.changed(place_of(tensorflow()), &old, nullptr);
  EXPECT_EQ(counted.of("tf_operator_jobs_deleted_total"), " 1;") << "it is deleted now";
}

struct TallyEnd {
  const char* condition;
  const char* word;
};

class TallyOfEnds : public ::testing::TestWithParam<TallyEnd> {};

TEST_P(TallyOfEnds, CountsEachOnce) {
  Counted counted;
  const json::value job = tfjob().role("Worker", 1).build();
  const json::value ended = with_status(job, GetParam().condition);
  const std::string name = fmt::format("training_operator_jobs_{}_total", GetParam().word);
  const std::string place = R"({job_namespace="team",framework="tensorflow"} )";
  counted.appears(tensorflow(), job);
  counted.becomes(tensorflow(), job, with_status(job, GetParam().condition, false));
  EXPECT_EQ(counted.of(name), place + "0;");
  counted.becomes(tensorflow(), job, ended);
  json::value later = ended;
  json::set(later, {"metadata", "labels"}, {{"a", "b"}});
  counted.becomes(tensorflow(), ended, later);
  EXPECT_EQ(counted.of(name), place + "1;");
}

INSTANTIATE_TEST_SUITE_P(All, TallyOfEnds,
                         ::testing::Values(TallyEnd{"Succeeded", "successful"},
                                           TallyEnd{"Failed", "failed"}));

TEST(Tally, CountsARestartForEachStatusThatTellsMore) {
  Counted counted;
  const auto after = [](std::int64_t restarts) {
    return torchjob().role("Worker", 2).status({{"restarts", restarts}}).build();
  };
  counted.becomes(pytorch(), torchjob().role("Worker", 2).build(), after(2));
  counted.becomes(pytorch(), after(2), after(2));
  counted.becomes(pytorch(), after(2), after(3));
  EXPECT_EQ(counted.of("training_operator_jobs_restarted_total"),
            R"({job_namespace="team",framework="pytorch"} 2;)");
}

TEST(Tally, NamesTheLauncherOfEachMpiJobThatIsThere) {
  Counted counted;
  json::value job = mpijob().role("Launcher", 1).build();
  json::set(job, {"metadata", "creationTimestamp"}, "2026-11-15T11:00:00Z");
  counted.appears(mpi(), job);
  EXPECT_EQ(counted.of("mpi_operator_job_info"),
            R"({launcher="mnist-launcher",namespace="team"} 1;)");
  counted.becomes(mpi(), job, with_status(job, "Failed"));
  EXPECT_EQ(counted.of("mpi_operator_jobs_failed_total"), " 1;");
  EXPECT_EQ(counted.of("mpi_operator_jobs_successful_total"), " 0;");
  counted.becomes(mpi(), job, with_status(job, "Succeeded"));
  EXPECT_EQ(counted.of("mpi_operator_jobs_successful_total"), " 1;");
  counted.tally.changed(place_of(mpi()), &job, nullptr);
  EXPECT_EQ(counted.of("mpi_operator_job_info"), "");
}

TEST(Tally, CountsPodsAndServicesOfTrainingJobsOnly) {
  Counted counted;
  const json::value pod = testing::replica_pod("worker", 0, "Pending");
  const json::value ours = child(pod, tensorflow());
  json::value failed = ours;
  json::set(failed, {"status", "phase"}, "Failed");
  json::value foreign = ours;
  foreign.at_pointer("/metadata/ownerReferences/0/apiVersion") = "batch/v1";
  json::value namesake = ours;
  namesake.at_pointer("/metadata/ownerReferences/0/kind") = "Notebook";
  const json::value service = child(testing::replica_service("worker", 0), pytorch());
  for (const json::value* each :
       std::initializer_list<const json::value*>{&pod, &ours, &foreign, &namesake}) {
    counted.tally.changed(kPods, nullptr, each);
  }
  counted.tally.changed(kPods, &ours, &failed);
  counted.tally.changed(kPods, &failed, &failed);
  counted.tally.changed(kPods, &failed, nullptr);
  counted.tally.changed(kServices, nullptr, &service);
  EXPECT_EQ(counted.of("created_pods_total"), " 1;");
  EXPECT_EQ(counted.of("failed_pods_total"), " 1;");
  EXPECT_EQ(counted.of("deleted_pods_total"), " 1;");
  EXPECT_EQ(counted.of("succeeded_service_creation_total"), " 1;");
}

TEST(Tally, CountsAPodThatHasFailedByTheTimeItIsSeen) {
  Counted counted;
  json::value pod = child(testing::replica_pod("worker", 0, "Failed"), tensorflow());
  counted.tally.changed(kPods, nullptr, &pod);
  EXPECT_EQ(counted.of("failed_pods_total"), " 1;");
  json::set(pod, {"metadata", "creationTimestamp"}, "2026-11-15T11:00:00Z");
  counted.tally.changed(kPods, nullptr, &pod);
  EXPECT_EQ(counted.of("failed_pods_total"), " 1;") << "that one was counted before the start";
  EXPECT_EQ(counted.of("created_pods_total"), " 1;");
}

TEST(Tally, HasEveryNameFromTheStart) {
  const std::string text = Tally(kTallyNoon).text();
  for (const char* name : {"training_operator_jobs_created_total",
                           "training_operator_jobs_deleted_total",
                           "training_operator_jobs_successful_total",
                           "training_operator_jobs_failed_total",
                           "training_operator_jobs_restarted_total",
                           "created_pods_total",
                           "deleted_pods_total",
                           "failed_pods_total",
                           "created_pod_groups_total",
                           "deleted_pod_groups_total",
                           "succeeded_service_creation_total",
                           "failed_service_creation_total",
                           "tf_operator_jobs_created_total",
                           "tf_operator_jobs_deleted_total",
                           "tf_operator_jobs_successful_total",
                           "tf_operator_jobs_failed_total",
                           "tf_operator_jobs_restarted_total",
                           "tf_operator_is_leader",
                           "mpi_operator_jobs_created_total",
                           "mpi_operator_jobs_successful_total",
                           "mpi_operator_jobs_failed_total",
                           "mpi_operator_job_info",
                           "mpi_operator_is_leader"}) {
    EXPECT_NE(text.find(fmt::format("# HELP {} ", name)), std::string::npos) << name;
    EXPECT_NE(text.find(fmt::format("# TYPE {} ", name)), std::string::npos) << name;
  }
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(Tally, OfAWholeLifeIsThatOfTheWorld) {
  Counted counted;
  testing::World world(pytorch(), torchjob().role("Worker", 2).build());
  json::value seen = world.root;
  counted.appears(pytorch(), seen);
  const auto look = [&] {
    world.settle();
    counted.becomes(pytorch(), seen, world.root);
    seen = world.root;
  };
  look();
  world.all_phases("Running");
  look();
  world.set_phase("mnist-worker-1", "Failed", 1);
  look();
  world.all_phases("Succeeded");
  look();
  const std::string place = R"({job_namespace="team",framework="pytorch"} 1;)";
  EXPECT_EQ(counted.of("training_operator_jobs_created_total"), place);
  EXPECT_EQ(counted.of("training_operator_jobs_restarted_total"), place);
  EXPECT_EQ(counted.of("training_operator_jobs_successful_total"), place);
}

}  // namespace
}  // namespace skiff::training
