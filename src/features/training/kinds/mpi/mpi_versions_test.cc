// MPIJob in its older versions: what they become, and that nothing is lost either way.
#include "features/training/kinds/mpi/mpi_versions.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/engine/validation.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/kinds/mpi/mpi_settings.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::mpijob;
using testing::must_parse;

const OldVersion& mpi_versions_version(std::string_view name) {
  for (const OldVersion& old : mpi().old_versions) {
    if (old.version == name) return old;
  }
  SKIFF_CHECK(false, "no such version");
  std::abort();
}

const OldVersion& v1() { return mpi_versions_version("v1"); }
const OldVersion& alpha() { return mpi_versions_version("v1alpha2"); }

constexpr std::string_view kRoles =
    R"("mpiReplicaSpecs":{"Launcher":{"replicas":1,"template":{"spec":{"containers":[
      {"name":"a","image":"i"}]}}},"Worker":{"replicas":2,"template":{"spec":{"containers":[
      {"name":"a","image":"i"}]}}}})";

json::value mpi_versions_job(std::string_view more) {
  return must_parse(fmt::format(
      R"({{"metadata":{{"name":"a","namespace":"team"}},"spec":{{{},{}}}}})", more, kRoles));
}

json::value mpi_versions_kept(const OldVersion& old, json::value object) {
  old.to_kept(object);
  return object;
}

json::value mpi_versions_shown(const OldVersion& old, json::value object) {
  old.from_kept(object);
  return object;
}

class ThereAndBack : public ::testing::TestWithParam<std::string> {};

TEST_P(ThereAndBack, OfV1LosesNothing) {
  const json::value written = mpi_versions_job(GetParam());
  const json::value stored = mpi_versions_kept(v1(), written);
  EXPECT_EQ(mpi_versions_shown(v1(), stored), written) << json::serialize(stored);
  EXPECT_TRUE(validate_job(mpi(), stored, {}).empty());
  EXPECT_EQ(mpi_versions_kept(alpha(), mpi_versions_shown(alpha(), stored)), stored)
      << "nor does a look by another version";
}

TEST_P(ThereAndBack, OfV1alpha2LosesNothing) {
  const json::value written = mpi_versions_job(GetParam());
  const json::value stored = mpi_versions_kept(alpha(), written);
  EXPECT_EQ(mpi_versions_shown(alpha(), stored), written) << json::serialize(stored);
  EXPECT_EQ(mpi_versions_kept(v1(), mpi_versions_shown(v1(), stored)), stored)
      << "nor does a look by another version";
}

INSTANTIATE_TEST_SUITE_P(
    All, ThereAndBack,
    ::testing::Values(R"("slotsPerWorker":4)", R"("slotsPerWorker":1,"cleanPodPolicy":"All")",
                      R"("cleanPodPolicy":"All","runPolicy":{"cleanPodPolicy":"None"})",
                      R"("cleanPodPolicy":"All","runPolicy":{"backoffLimit":2})",
                      R"("cleanPodPolicy":"All","runPolicy":{})",
                      R"("mainContainer":"a","slotsPerWorker":2)", R"("runPolicy":{})"));

TEST(Alpha2, LosesNothingOfItsOwnWords) {
  for (const char* more :
       {R"("backoffLimit":2,"activeDeadlineSeconds":60)",
        R"("backoffLimit":2,"cleanPodPolicy":"All","runPolicy":{"backoffLimit":3})",
        R"("mpiDistribution":"IntelMPI","mainContainer":"a")", R"("mpiDistribution":"MPICH")",
        R"("ttlSecondsAfterFinished":5)"}) {
    const json::value written = mpi_versions_job(more);
    EXPECT_EQ(mpi_versions_shown(alpha(), mpi_versions_kept(alpha(), written)), written) << more;
    const json::value stored = mpi_versions_kept(alpha(), written);
    EXPECT_EQ(mpi_versions_kept(v1(), mpi_versions_shown(v1(), stored)), stored) << more;
  }
}

TEST(NewJob, LosesNothingToReadersOfOldVersions) {
  const std::vector<json::value> jobs{
      mpijob().role("Launcher", 1).role("Worker", 2).build(),
      mpijob()
          .role("Launcher", 1, "OnFailure")
          .role("Worker", 2)
          .run("cleanPodPolicy", "All")
          .run("backoffLimit", 2)
          .spec("slotsPerWorker", 4)
          .spec("runLauncherAsWorker", true)
          .spec("sshAuthMountPath", "/home/mpiuser/.ssh")
          .spec("launcherCreationPolicy", "WaitForWorkersReady")
          .spec("mpiImplementation", "Intel")
          .build(),
      mpijob().role("Launcher", 1).spec("runPolicy", json::object{}).build()};
  for (const json::value& stored : jobs) {
    for (const OldVersion& old : mpi().old_versions) {
      EXPECT_EQ(mpi_versions_kept(old, mpi_versions_shown(old, stored)), stored) << old.version;
      EXPECT_FALSE(json::get_object(mpi_versions_shown(old, stored), {"spec"})
                       .contains("mpiImplementation"));
    }
  }
}

TEST(V1Job, KeepsItsDefaults) {
  const json::value stored = mpi_versions_kept(v1(), mpi_versions_job(R"("slotsPerWorker":1)"));
  EXPECT_TRUE(written_as_v1(stored));
  const Job read = read_job(mpi(), stored);
  EXPECT_EQ(read.role("Launcher")->restart, RestartPolicy::kNever);
  EXPECT_EQ(read.role("Worker")->restart, RestartPolicy::kNever);
}

TEST(V1Job, BecomesNewWhenWrittenAsNew) {
  json::value stored = mpi_versions_kept(v1(), mpi_versions_job(R"("slotsPerWorker":1)"));
  stored.at("metadata").as_object().erase("annotations");
  EXPECT_FALSE(written_as_v1(stored));
  EXPECT_EQ(read_job(mpi(), stored).role("Launcher")->restart, RestartPolicy::kOnFailure);
}

TEST(V1alpha2Job, RestartsItsLauncher) {
  const json::value stored = mpi_versions_kept(alpha(), mpi_versions_job(R"("slotsPerWorker":1)"));
  const Job read = read_job(mpi(), stored);
  EXPECT_EQ(read.role("Launcher")->restart, RestartPolicy::kOnFailure);
  EXPECT_EQ(read.role("Worker")->restart, RestartPolicy::kNever);
  EXPECT_EQ(read.run.backoff_limit, 6);
  EXPECT_EQ(read.run.clean_pods, CleanPodPolicy::kRunning);
}

TEST(OldJob, HasItsPoliciesWhereTheEngineLooks) {
  const json::value stored = mpi_versions_kept(
      alpha(),
      mpi_versions_job(R"("backoffLimit":2,"activeDeadlineSeconds":60,"cleanPodPolicy":"None",
        "runPolicy":{"backoffLimit":3})"));
  const Job read = read_job(mpi(), stored);
  EXPECT_EQ(read.run.backoff_limit, 3) << "runPolicy holds";
  EXPECT_EQ(read.run.active_deadline, std::chrono::seconds(60));
  EXPECT_EQ(read.run.clean_pods, CleanPodPolicy::kNone);
}

TEST(OldJob, NamesItsMpiAndItsMainContainer) {
  const json::value stored = mpi_versions_kept(
      alpha(), mpi_versions_job(R"("mpiDistribution":"IntelMPI","mainContainer":"a")"));
  const Job read = read_job(mpi(), stored);
  EXPECT_EQ(read_mpi_settings(read).implementation, MpiImplementation::kIntel);
  EXPECT_EQ(read_mpi_settings(read).main_container, "a");
}

TEST(OldJob, ChangedByAReaderOfTodayShowsTheChange) {
  json::value stored =
      mpi_versions_kept(alpha(), mpi_versions_job(R"("backoffLimit":2,"mpiDistribution":"MPICH")"));
  json::set(stored, {"spec", "runPolicy", "backoffLimit"}, 5);
  json::set(stored, {"spec", "mpiImplementation"}, "OpenMPI");
  const json::value seen = mpi_versions_shown(alpha(), stored);
  EXPECT_EQ(json::get_int(seen, {"spec", "backoffLimit"}), 5);
  EXPECT_EQ(json::find(seen, {"spec", "mpiDistribution"}), nullptr);
  const json::value again = mpi_versions_kept(alpha(), seen);
  EXPECT_EQ(json::get_string(again, {"spec", "mpiImplementation"}), "OpenMPI");
}

TEST(NewJob, ChangedInTheWordsOfV1IsChanged) {
  json::value seen =
      mpi_versions_shown(v1(), mpijob().role("Launcher", 1).role("Worker", 1).build());
  json::set(seen, {"spec", "cleanPodPolicy"}, "All");
  json::set(seen, {"spec", "mainContainer"}, "mpi");
  const json::value stored = mpi_versions_kept(v1(), seen);
  const Job read = read_job(mpi(), stored);
  EXPECT_EQ(read.run.clean_pods, CleanPodPolicy::kAll);
  EXPECT_EQ(read_mpi_settings(read).main_container, "mpi");
  EXPECT_FALSE(written_as_v1(stored)) << "it was new before";
}

TEST(OldJob, WithAnAnnotationThatIsNonsenseIsStillAJob) {
  for (const char* text :
       {"", "no JSON", "[]", R"({"writtenAs":7})", R"({"lifted":[1,"x"],"writtenAs":"v1"})",
        R"({"spec":{"mpiImplementation":7,"unknown":1},"writtenAs":"v2beta1"})",
        R"({"older":7,"writtenAs":"v1"})"}) {
    for (const OldVersion& old : {v1(), alpha()}) {
      for (const std::string_view annotation : {kOlderFields, kNewerFields}) {
        json::value object = mpi_versions_job(R"("slotsPerWorker":1)");
        json::make_object(object, {"metadata", "annotations"})[annotation] = text;
        const json::value stored = mpi_versions_kept(old, object);
        EXPECT_FALSE(json::get_object(stored, {"spec"}).contains("unknown")) << text;
        EXPECT_EQ(read_job(mpi(), mpi_versions_shown(old, object)).roles.size(), 2u) << text;
      }
    }
  }
}

}  // namespace
}  // namespace skiff::training
