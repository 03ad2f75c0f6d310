#include "control/decision.h"

#include <utility>

#include "control/answers.h"
#include "control/apply.h"

namespace skiff::control {

Decision decide(const Controller& controller, const Observed& observed, Time now) {
  Plan plan = controller.plan(observed, now);
  Decision out{.root = observed.root,
               .after_refusal = observed.refused.has_value(),
               .empty = plan.empty(),
               .notes = std::move(plan.notes),
               .requeue_after = plan.requeue_after};
  if (out.empty) return out;
  out.writes = arrange(controller, observed, std::move(plan));
  out.asked = without_bodies(out.writes);
  return out;
}

}  // namespace skiff::control
