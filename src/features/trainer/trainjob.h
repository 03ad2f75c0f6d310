// TrainJob, TrainingRuntime and ClusterTrainingRuntime (trainer.kubeflow.org/v1alpha1): names and
// rules that all parts of the feature share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::trainer {

inline constexpr std::string_view kGroup = "trainer.kubeflow.org";
inline constexpr std::string_view kOwnManager = "trainer.kubeflow.org/trainjob-controller";
inline constexpr std::string_view kMultiKueue = "kueue.x-k8s.io/multikueue";
// On the Job template of a runtime's part: what the part is for.
inline constexpr std::string_view kStepLabel = "trainer.kubeflow.org/trainjob-ancestor-step";
inline constexpr std::string_view kFrameworkLabel = "trainer.kubeflow.org/framework";
inline constexpr std::string_view kTrainerStep = "trainer";
inline constexpr std::string_view kNode = "node";  // the container that trains
inline constexpr std::string_view kDatasetInitializer = "dataset-initializer";
inline constexpr std::string_view kModelInitializer = "model-initializer";
// On the JobSet: what it was last made from, to see whether that has changed.
inline constexpr std::string_view kSourceAnnotation = "trainer.skiff.dev/source";

const api::Resource& trainjob_resource();
const api::Resource& runtime_resource();
const api::Resource& cluster_runtime_resource();
const api::Resource& jobset_resource();
const api::Resource& config_map_resource();

// Which runtime kind a job names, with upstream's defaults; null where there is no such kind.
const api::Resource* runtime_kind(const json::value& trainjob);
// "TrainingRuntime.trainer.kubeflow.org", as upstream names it in sentences.
std::string runtime_kind_text(const json::value& trainjob);

// The parts of a runtime's template.
const json::array& parts(const json::value& runtime);
std::string_view step_of(const json::value& part);
const json::array& containers(const json::value& part);

// Sets the times of runtime patches that are new or have changed.
void stamp_patches(json::value& trainjob, const api::Admission& context);

// Rules beyond the schema. Writes to status are not judged.
std::vector<Cause> validate_trainjob(const json::value& trainjob, const api::Admission& context);
std::vector<Cause> validate_runtime(const json::value& runtime, const api::Admission& context);
// What is wrong with a job in view of its runtime, which only the controller sees.
std::vector<Cause> check_against(const json::value& trainjob, const json::value& runtime);

}  // namespace skiff::trainer
