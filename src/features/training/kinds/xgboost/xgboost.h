// XGBoostJob (kubeflow.org/v1): a master that keeps the tracker, and workers. LightGBM uses it too.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

const JobKind& xgboost();

}  // namespace skiff::training
