// TFJob (kubeflow.org/v1): chief or master, workers, parameter servers, evaluator.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

const JobKind& tensorflow();

}  // namespace skiff::training
