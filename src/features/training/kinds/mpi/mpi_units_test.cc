// MPIJob v1alpha1: what it becomes, and that nothing is lost either way.
#include "features/training/kinds/mpi/mpi_units.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "base/random.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/validation.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/kinds/mpi/mpi_settings.h"
#include "features/training/kinds/mpi/mpi_versions.h"
#include "features/training/testing/builders.h"
#include "features/training/testing/random_job.h"

namespace skiff::training {
namespace {

using testing::mpijob;
using testing::must_parse;

json::value mpi_units_kept(json::value object) {
  from_units(object);
  return object;
}

json::value mpi_units_shown(json::value object) {
  to_units(object);
  return object;
}

constexpr std::string_view kContainer =
    R"({"name":"a","image":"i","command":["mpirun"],"args":["train"]})";

json::value mpi_units_job(std::string_view words, std::string_view container = kContainer) {
  return must_parse(fmt::format(
      R"({{"metadata":{{"name":"a","namespace":"team"}},"spec":{{{},"template":{{
        "metadata":{{"labels":{{"mine":"yes"}}}},"spec":{{"containers":[{}]}}}}}}}})",
      words, container));
}

const json::value& role(const json::value& object, std::string_view name) {
  return json::get_object(object, {"spec", "mpiReplicaSpecs"}).at(name);
}

const json::value& mpi_units_container(const json::value& object, std::string_view name) {
  return json::get_array(role(object, name), {"template", "spec", "containers"}).at(0);
}

std::string limit(const json::value& object, std::string_view name, std::string_view resource) {
  const json::value* found =
      json::find(mpi_units_container(object, name), {"resources", "limits", resource});
  return found == nullptr ? "none" : json::serialize(*found);
}

std::vector<std::string> mpi_units_complaints(const json::value& written) {
  std::vector<std::string> out;
  for (const Cause& cause : validate_job(mpi(), mpi_units_kept(written), {})) {
    out.push_back(cause.field + ": " + cause.message);
  }
  return out;
}

TEST(Units, BecomeWorkers) {
  struct Case {
    const char* words;
    std::int64_t workers;
    std::int64_t slots;
    const char* gpus;
    const char* cpus;
  };
  for (const Case& c : {
           Case{R"("gpus":16)", 2, 8, "8", "none"},
           Case{R"("gpus":8)", 1, 8, "8", "none"},
           Case{R"("gpus":4)", 1, 4, "4", "none"},
           Case{R"("gpus":8,"gpusPerNode":2)", 4, 2, "2", "none"},
           Case{R"("processingUnits":3)", 3, 1, "1", "none"},
           Case{R"("processingUnits":8,"processingUnitsPerNode":4)", 2, 4, "4", "none"},
           Case{R"("processingUnits":4,"processingUnitsPerNode":2,"processingResourceType":"cpu")",
                2, 2, "none", "2"},
           Case{R"("processingUnits":8,"processingUnitsPerNode":4,"slotsPerWorker":6)", 2, 6, "4",
                "none"},
           Case{R"("replicas":3)", 3, 1, "none", "none"},
       }) {
    const json::value stored = mpi_units_kept(mpi_units_job(c.words));
    EXPECT_EQ(json::get_int(role(stored, "Worker"), {"replicas"}), c.workers) << c.words;
    EXPECT_EQ(json::get_int(stored, {"spec", "slotsPerWorker"}), c.slots) << c.words;
    EXPECT_EQ(limit(stored, "Worker", "nvidia.com/gpu"), c.gpus) << c.words;
    EXPECT_EQ(limit(stored, "Worker", "cpu"), c.cpus) << c.words;
    EXPECT_EQ(validate_job(mpi(), stored, {}), std::vector<Cause>{}) << c.words;
  }
}

TEST(Units, OfReplicasAreThoseOfTheTemplate) {
  const json::value stored =
      mpi_units_kept(mpi_units_job(R"("replicas":4)", R"({"name":"a","image":"i","resources":
      {"limits":{"nvidia.com/gpu":4,"memory":"1Gi"},"requests":{"nvidia.com/gpu":"4"}}})"));
  EXPECT_EQ(json::get_int(role(stored, "Worker"), {"replicas"}), 4);
  EXPECT_EQ(json::get_int(stored, {"spec", "slotsPerWorker"}), 4);
  EXPECT_EQ(limit(stored, "Worker", "nvidia.com/gpu"), "4");
  EXPECT_EQ(limit(stored, "Worker", "memory"), "\"1Gi\"");
  const json::value half =
      mpi_units_kept(mpi_units_job(R"("replicas":1,"processingResourceType":"cpu")",
                                   R"({"name":"a","image":"i","resources":{"limits":
                                        {"cpu":"500m"}}})"));
  EXPECT_EQ(json::get_int(half, {"spec", "slotsPerWorker"}), 1) << "a part of one is no slot";
  EXPECT_EQ(limit(half, "Worker", "cpu"), "\"500m\"");
}

TEST(Units, GoToWorkersAndTheProgramToTheLauncher) {
  const json::value stored = mpi_units_kept(mpi_units_job(R"("gpus":4)", R"({"name":"a","image":"i",
      "command":["mpirun"],"args":["train"],"resources":{"limits":{"memory":"1Gi"},
      "requests":{"nvidia.com/gpu":1,"memory":"1Gi"}}})"));
  const json::value& launcher = mpi_units_container(stored, "Launcher");
  EXPECT_EQ(launcher, must_parse(kContainer)) << "it asks for nothing";
  const json::value& worker = mpi_units_container(stored, "Worker");
  EXPECT_EQ(worker, must_parse(R"({"name":"a","image":"i","resources":{
      "limits":{"memory":"1Gi","nvidia.com/gpu":4},"requests":{"memory":"1Gi"}}})"))
      << "it waits, and what it asks for follows from its limit";
  for (const std::string_view name : {"Launcher", "Worker"}) {
    EXPECT_EQ(json::get_string(role(stored, name), {"template", "metadata", "labels", "mine"}),
              "yes");
    EXPECT_EQ(json::get_string(role(stored, name), {"restartPolicy"}), "OnFailure");
  }
}

TEST(Units, KeepTheDefaultsOfTheirTime) {
  json::value written = mpi_units_job(R"("replicas":1)");
  Job read = read_job(mpi(), mpi_units_kept(written));
  EXPECT_EQ(read.run.backoff_limit, 6);
  EXPECT_EQ(read.run.clean_pods, CleanPodPolicy::kRunning);
  json::set(written, {"spec", "backoffLimit"}, 2);
  json::set(written, {"spec", "activeDeadlineSeconds"}, 60);
  json::set(written, {"spec", "template", "spec", "restartPolicy"}, "Never");
  const json::value stored = mpi_units_kept(written);
  read = read_job(mpi(), stored);
  EXPECT_EQ(read.run.backoff_limit, 2);
  EXPECT_EQ(read.run.active_deadline, std::chrono::seconds(60));
  EXPECT_EQ(read.role("Launcher")->restart, RestartPolicy::kNever);
  EXPECT_EQ(read.role("Worker")->restart, RestartPolicy::kOnFailure);
  EXPECT_FALSE(written_as_v1(stored));
}

TEST(Units, PreferAMasterForTheLauncherAndDoWithoutOne) {
  json::value written = mpi_units_job(R"("replicas":1,"launcherOnMaster":true)");
  json::set(written, {"spec", "template", "spec", "tolerations"},
            must_parse(R"([{"key":"mine","operator":"Exists"}])"));
  const json::value stored = mpi_units_kept(written);
  const json::value& pod = *json::find(role(stored, "Launcher"), {"template", "spec"});
  EXPECT_EQ(json::get_array(pod, {"tolerations"}).size(), 3u);
  EXPECT_EQ(json::get_array(pod, {"affinity", "nodeAffinity",
                                  "preferredDuringSchedulingIgnoredDuringExecution"})
                .size(),
            2u);
  EXPECT_EQ(json::find(role(stored, "Worker"), {"template", "spec", "affinity"}), nullptr);
  EXPECT_EQ(mpi_units_shown(stored), written);
}

TEST(Units, MustBeGivenInExactlyOneWay) {
  using Sentences = std::vector<std::string>;
  EXPECT_EQ(mpi_units_complaints(mpi_units_job(R"("slotsPerWorker":1)")),
            (Sentences{"spec.replicas: Required value: exactly one of gpus, processingUnits and "
                       "replicas must be given"}));
  EXPECT_EQ(mpi_units_complaints(mpi_units_job(R"("gpus":1,"replicas":1)")),
            (Sentences{"spec.replicas: Forbidden: may not be given beside gpus: exactly one of "
                       "gpus, processingUnits and replicas says how large the job is"}));
  EXPECT_EQ(
      mpi_units_complaints(mpi_units_job(R"("gpus":1,"processingUnits":1,"replicas":1)")).size(),
      2u);
  EXPECT_EQ(mpi_units_complaints(mpi_units_job(R"("gpus":12)")),
            (Sentences{"spec.gpus: Invalid value: 12: must be less than gpusPerNode, which is 8, "
                       "or a multiple of it"}));
  EXPECT_EQ(
      mpi_units_complaints(mpi_units_job(R"("processingUnits":5,"processingUnitsPerNode":2)")),
      (Sentences{"spec.processingUnits: Invalid value: 5: must be less than "
                 "processingUnitsPerNode, which is 2, or a multiple of it"}));
  EXPECT_EQ(mpi_units_complaints(mpi_units_job(R"("gpus":12,"gpusPerNode":4)")), Sentences{});
}

json::value random_units(Random& random) {
  json::value out = mpi_units_job(R"("backoffLimit":1)");
  json::object& spec = out.at("spec").as_object();
  const auto number = [&] { return testing::between(random, 1, 8); };
  switch (random.below(3)) {
    case 0:
      spec["gpus"] = number();
      if (random.chance(50)) spec["gpusPerNode"] = 1;
      break;
    case 1:
      spec["processingUnits"] = number();
      if (random.chance(50)) spec["processingUnitsPerNode"] = 1;
      break;
    default:
      spec["replicas"] = number();
  }
  if (random.chance(30)) {
    spec["processingResourceType"] = json::string(testing::pick(random, {"cpu", "nvidia.com/gpu"}));
  }
  if (random.chance(30)) spec["slotsPerWorker"] = number();
  if (random.chance(50)) spec.erase("backoffLimit");
  if (random.chance(30)) spec["activeDeadlineSeconds"] = number();
  if (random.chance(40)) spec["launcherOnMaster"] = random.chance(50);
  json::value& pod = spec["template"].at("spec");
  if (random.chance(30)) json::set(pod, {"restartPolicy"}, "Never");
  if (random.chance(30)) json::set(pod, {"tolerations"}, json::array{{{"key", "k"}}});
  if (random.chance(20)) json::set(pod, {"affinity", "podAffinity"}, json::object{});
  json::object& first = pod.at("containers").as_array()[0].as_object();
  if (random.chance(50)) first["resources"] = {{"limits", {{"cpu", number()}, {"memory", "1Gi"}}}};
  if (random.chance(20)) first["resources"] = {{"requests", {{"cpu", number()}}}};
  if (random.chance(30)) first.erase("command");
  if (random.chance(30)) {
    pod.at("containers").as_array().push_back({{"name", "side"}, {"image", "s"}});
  }
  return out;
}

// What a reader of another version may do to a job.
void change_at_random(json::value& stored, Random& random) {
  switch (random.below(7)) {
    case 0:
      json::set(stored, {"spec", "runPolicy", "suspend"}, random.chance(50));
      break;
    case 1:
      json::set(stored, {"spec", "runPolicy", "backoffLimit"}, 3);
      break;
    case 2:
      json::set(stored, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}, 5);
      break;
    case 3:
      json::set(stored, {"spec", "mpiImplementation"}, "Intel");
      break;
    case 4:
      json::make_object(stored, {"spec"}).erase("slotsPerWorker");
      break;
    case 5:
      json::set(stored, {"spec", "mpiReplicaSpecs", "Launcher", "restartPolicy"}, "Never");
      break;
    default:
      json::set(stored, {"spec", "runPolicy"}, json::object{});
  }
}

TEST(Units, ComeBackAsTheyWereWritten) {
  Random random(7);
  for (int i = 0; i < 500; ++i) {
    const json::value written = random_units(random);
    const json::value stored = mpi_units_kept(written);
    EXPECT_EQ(mpi_units_shown(stored), written) << json::serialize(stored);
    EXPECT_EQ(validate_job(mpi(), stored, {}), std::vector<Cause>{}) << json::serialize(written);
    for (const OldVersion& old : mpi().old_versions) {
      json::value looked_at = stored;
      old.from_kept(looked_at);
      old.to_kept(looked_at);
      EXPECT_EQ(looked_at, stored) << "nor does a look by " << old.version << " lose anything";
    }
  }
}

TEST(Units, LoseNothingOfWhatOthersWrite) {
  Random random(8);
  for (int i = 0; i < 500; ++i) {
    json::value stored = random.chance(50) ? mpi_units_kept(random_units(random))
                                           : testing::random_job(mpi(), "a", random);
    for (std::uint64_t n = random.below(4); n > 0; --n) change_at_random(stored, random);
    EXPECT_EQ(mpi_units_kept(mpi_units_shown(stored)), stored)
        << json::serialize(mpi_units_shown(stored));
  }
}

TEST(Units, StayAsTheyWereWrittenWhereOthersChangeSomethingElse) {
  const json::value written = mpi_units_job(R"("gpus":16,"backoffLimit":1)");
  json::value stored = mpi_units_kept(written);
  json::set(stored, {"spec", "runPolicy", "suspend"}, true);
  json::set(stored, {"spec", "runPolicy", "backoffLimit"}, 4);
  const json::value seen = mpi_units_shown(stored);
  EXPECT_EQ(json::get_int(seen, {"spec", "gpus"}), 16);
  EXPECT_EQ(json::get_int(seen, {"spec", "backoffLimit"}), 4);
  EXPECT_FALSE(json::get_object(seen, {"spec"}).contains("replicas"));
  // Its writer applies it again: what it does not speak of stays.
  json::value again = seen;
  json::set(again, {"spec", "gpus"}, 24);
  const json::value after = mpi_units_kept(again);
  EXPECT_EQ(json::get_int(role(after, "Worker"), {"replicas"}), 3);
  EXPECT_EQ(json::get_bool(after, {"spec", "runPolicy", "suspend"}), true);
}

TEST(Units, ThatSayNothingTrueAnyMoreAreShownAsReplicas) {
  json::value stored = mpi_units_kept(mpi_units_job(R"("gpus":16)"));
  json::set(stored, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}, 5);
  const json::value seen = mpi_units_shown(stored);
  EXPECT_EQ(json::get_int(seen, {"spec", "replicas"}), 5);
  EXPECT_EQ(json::get_int(seen, {"spec", "slotsPerWorker"}), 8);
  EXPECT_FALSE(json::get_object(seen, {"spec"}).contains("gpus"));
}

TEST(NewJob, IsChangedByAReaderOfUnits) {
  const json::value stored = mpijob()
                                 .role("Launcher", 1, "OnFailure")
                                 .role("Worker", 2)
                                 .run("cleanPodPolicy", "All")
                                 .spec("mpiImplementation", "Intel")
                                 .build();
  json::value seen = mpi_units_shown(stored);
  EXPECT_EQ(json::get_int(seen, {"spec", "replicas"}), 2);
  json::set(seen, {"spec", "replicas"}, 3);
  json::set(seen, {"spec", "slotsPerWorker"}, 2);
  json::set(seen, {"spec", "activeDeadlineSeconds"}, 9);
  json::set(seen, {"spec", "template", "metadata", "labels"}, {{"new", "yes"}});
  json::value expected = stored;
  json::set(expected, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}, 3);
  json::set(expected, {"spec", "slotsPerWorker"}, 2);
  json::set(expected, {"spec", "runPolicy", "activeDeadlineSeconds"}, 9);
  json::set(expected, {"spec", "mpiReplicaSpecs", "Launcher", "template", "metadata", "labels"},
            {{"new", "yes"}});
  EXPECT_EQ(mpi_units_kept(seen), expected);
  // One who gives units means them.
  seen.at("spec").as_object().erase("replicas");
  json::set(seen, {"spec", "gpus"}, 16);
  const json::value after = mpi_units_kept(seen);
  EXPECT_EQ(written_version(after), "v1alpha1");
  EXPECT_EQ(json::get_int(role(after, "Worker"), {"replicas"}), 2);
  EXPECT_EQ(json::get_string(after, {"spec", "runPolicy", "cleanPodPolicy"}), "All");
  EXPECT_EQ(json::get_string(after, {"spec", "mpiImplementation"}), "Intel");
}

TEST(Units, TellHowTheLauncherIs) {
  const auto status = [](std::string_view text) {
    json::value stored = mpi_units_kept(mpi_units_job(R"("replicas":2)"));
    json::set(stored, {"status"}, must_parse(text));
    const json::value seen = mpi_units_shown(stored);
    EXPECT_EQ(mpi_units_kept(seen), stored) << "a status written back is whole";
    return fmt::format("{} {}", json::get_string(seen, {"status", "launcherStatus"}, "none"),
                       json::get_int(seen, {"status", "workerReplicas"}).value_or(0));
  };
  EXPECT_EQ(status(R"({"conditions":[{"type":"Created","status":"True"}]})"), "none 0");
  EXPECT_EQ(status(R"({"conditions":[{"type":"Created","status":"True"}],
      "replicaStatuses":{"Launcher":{"active":1},"Worker":{"active":1}}})"),
            "Active 1");
  EXPECT_EQ(status(R"({"conditions":[{"type":"Running","status":"True"}],
      "replicaStatuses":{"Worker":{"active":2}}})"),
            "Active 2");
  EXPECT_EQ(status(R"({"conditions":[{"type":"Running","status":"False"},
      {"type":"Succeeded","status":"True"}],"startTime":"2026-11-15T12:00:00Z",
      "completionTime":"2026-11-15T12:01:00Z"})"),
            "Succeeded 0");
  EXPECT_EQ(status(R"({"conditions":[{"type":"Failed","status":"True"}]})"), "Failed 0");
}

TEST(Units, WithAnAnnotationThatIsNonsenseAreStillAJob) {
  for (const char* text :
       {"", "no JSON", "[]", R"({"writtenAs":7})", R"({"writtenAs":"v1alpha1","gpus":"x"})",
        R"({"spec":{"mpiImplementation":7,"unknown":1}})",
        R"({"spec":{"mpiReplicaSpecs":7},"writtenAs":"v2beta1"})",
        R"({"older":7,"spec":{},"writtenAs":"v1"})"}) {
    for (const std::string_view annotation : {kOlderFields, kNewerFields}) {
      json::value object = mpi_units_job(R"("replicas":2)");
      json::make_object(object, {"metadata", "annotations"})[annotation] = text;
      const json::value stored = mpi_units_kept(object);
      EXPECT_FALSE(json::get_object(stored, {"spec"}).contains("unknown")) << text;
      EXPECT_EQ(json::get_int(role(stored, "Worker"), {"replicas"}), 2) << text;
      json::value other = mpijob().role("Launcher", 1).role("Worker", 2).build();
      json::make_object(other, {"metadata", "annotations"})[annotation] = text;
      EXPECT_EQ(json::get_int(mpi_units_shown(other), {"spec", "replicas"}), 2) << text;
    }
  }
}

}  // namespace
}  // namespace skiff::training
