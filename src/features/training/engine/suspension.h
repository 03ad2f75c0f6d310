// Suspending and resuming a job (spec.runPolicy.suspend).
#pragma once

#include "features/training/engine/draft.h"

namespace skiff::training {

// Takes away every pod and service, whatever the clean-up policy says, and tells so once.
void suspend(Draft& draft);
// Where the job was suspended: says that it is not any more, and starts its clock anew.
void resume(Draft& draft);

}  // namespace skiff::training
