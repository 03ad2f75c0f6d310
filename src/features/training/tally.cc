#include "features/training/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "api/meta.h"
#include "features/training/engine/conditions.h"
#include "features/training/engine/plan.h"
#include "features/training/kinds/kinds.h"
#include "features/training/kinds/mpi/mpi.h"
#include "features/training/kinds/tensorflow/tensorflow.h"

namespace skiff::training {
namespace {

// The label `framework` is spelt as the container that trains.
const std::string& framework_of(const JobKind& kind) { return kind.container; }

bool turned_true(const json::value& before, const json::value& after, std::string_view type) {
  return !api::condition_true(before, type) && api::condition_true(after, type);
}

std::int64_t restarts_of(const json::value& job) {
  return json::get_int(job, {"status", "restarts"}).value_or(0);
}

bool is_of_training(const json::value& child) {
  const json::object* owner = api::controller_of(child);
  if (owner == nullptr) return false;
  const json::value reference(*owner);
  const std::string_view kind = json::get_string(reference, {"kind"});
  return json::get_string(reference, {"apiVersion"}).starts_with("kubeflow.org/") &&
         std::ranges::any_of(job_kinds(),
                             [&](const JobKind* job) { return job->resource.kind == kind; });
}

bool has_failed(const json::value& pod) {
  return json::get_string(pod, {"status", "phase"}) == "Failed";
}

using Out = std::back_insert_iterator<std::string>;

void head(Out out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(out, "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void single(Out out, std::string_view name, std::string_view type, std::string_view help,
            std::uint64_t value) {
  head(out, name, type, help);
  fmt::format_to(out, "{} {}\n", name, value);
}

}  // namespace

Tally::Tally(Time started)
    // Creation times have whole seconds.
    : started_(std::chrono::floor<std::chrono::seconds>(started)) {}

std::vector<api::Resource> Tally::watched() {
  std::vector<api::Resource> out;
  for (const JobKind* kind : job_kinds()) out.push_back(kind->resource);
  out.push_back(pod_resource());
  out.push_back(service_resource());
  return out;
}

void Tally::changed(std::size_t which, const json::value* before, const json::value* after) {
  const std::size_t kinds = job_kinds().size();
  if (which < kinds) return job_changed(*job_kinds()[which], before, after);
  child_changed(which == kinds ? pods_ : services_, before, after);
}

bool Tally::is_new(const json::value& object) const {
  const std::optional<Time> created = api::created_at(object);
  return created && *created >= started_;
}

void Tally::job_changed(const JobKind& kind, const json::value* before, const json::value* after) {
  const json::value* job = after != nullptr ? after : before;
  if (job == nullptr) return;
  const std::pair place(std::string(api::ns(*job)), framework_of(kind));
  if (&kind == &mpi()) {
    const std::pair launcher(place.first, fmt::format("{}-launcher", api::name(*job)));
    if (after == nullptr) {
      launchers_.erase(launcher);
    } else {
      launchers_.insert(launcher);
    }
  }
  if (before == nullptr) {
    if (is_new(*job)) ++jobs_[place].created;
  } else if (after == nullptr) {
    ++jobs_[place].deleted;
  } else if (*before != *after) {
    Jobs& jobs = jobs_[place];
    jobs.successful += turned_true(*before, *after, kSucceeded) ? 1 : 0;
    jobs.failed += turned_true(*before, *after, kFailed) ? 1 : 0;
    jobs.restarted += restarts_of(*after) > restarts_of(*before) ? 1 : 0;
  }
}

void Tally::child_changed(Children& children, const json::value* before,
                          const json::value* after) const {
  const json::value* child = after != nullptr ? after : before;
  if (child == nullptr || !is_of_training(*child)) return;
  if (before == nullptr && is_new(*child)) ++children.created;
  if (after == nullptr) ++children.deleted;
  const bool known = before == nullptr ? !is_new(*child) : has_failed(*before);
  if (after != nullptr && !known && has_failed(*after)) ++children.failed;
}

Tally::Jobs Tally::sum(std::string_view framework) const {
  Jobs out;
  for (const auto& [place, jobs] : jobs_) {
    if (place.second != framework) continue;
    out.created += jobs.created;
    out.deleted += jobs.deleted;
    out.successful += jobs.successful;
    out.failed += jobs.failed;
    out.restarted += jobs.restarted;
  }
  return out;
}

std::string Tally::text() const {
  struct Family {
    std::string_view word = {};
    std::string_view help = {};
    std::uint64_t Jobs::* count = nullptr;
  };
  constexpr Family kFamilies[] = {{"created", "Jobs created.", &Jobs::created},
                                  {"deleted", "Jobs deleted.", &Jobs::deleted},
                                  {"successful", "Jobs that have succeeded.", &Jobs::successful},
                                  {"failed", "Jobs that have failed.", &Jobs::failed},
                                  {"restarted", "Restarts of jobs.", &Jobs::restarted}};
  std::string text;
  const Out out(text);
  const Jobs tf = sum(framework_of(tensorflow()));
  const Jobs of_mpi = sum(framework_of(mpi()));
  for (const Family& family : kFamilies) {
    const std::string name = fmt::format("training_operator_jobs_{}_total", family.word);
    head(out, name, "counter", family.help);
    for (const auto& [place, jobs] : jobs_) {
      fmt::format_to(out, "{}{{job_namespace=\"{}\",framework=\"{}\"}} {}\n", name, place.first,
                     place.second, jobs.*family.count);
    }
    single(out, fmt::format("tf_operator_jobs_{}_total", family.word), "counter", family.help,
           tf.*family.count);
  }
  single(out, "mpi_operator_jobs_created_total", "counter", "MPIJobs created.", of_mpi.created);
  single(out, "mpi_operator_jobs_successful_total", "counter", "MPIJobs that have succeeded.",
         of_mpi.successful);
  single(out, "mpi_operator_jobs_failed_total", "counter", "MPIJobs that have failed.",
         of_mpi.failed);
  head(out, "mpi_operator_job_info", "gauge", "The launcher of each MPIJob.");
  for (const auto& [ns, launcher] : launchers_) {
    fmt::format_to(out, "mpi_operator_job_info{{launcher=\"{}\",namespace=\"{}\"}} 1\n", launcher,
                   ns);
  }
  // There is one of us, and it is in charge.
  single(out, "mpi_operator_is_leader", "gauge", "Whether this process is in charge.", 1);
  single(out, "tf_operator_is_leader", "gauge", "Whether this process is in charge.", 1);
  single(out, "created_pods_total", "counter", "Pods of training jobs created.", pods_.created);
  single(out, "deleted_pods_total", "counter", "Pods of training jobs deleted.", pods_.deleted);
  single(out, "failed_pods_total", "counter", "Pods of training jobs that failed.", pods_.failed);
  single(out, "succeeded_service_creation_total", "counter", "Services of training jobs created.",
         services_.created);
  // A job's children and its status are one transaction: what fails is the whole of it.
  single(out, "failed_service_creation_total", "counter", "None fails by itself.", 0);
  single(out, "created_pod_groups_total", "counter", "Gangs need no objects.", 0);
  single(out, "deleted_pod_groups_total", "counter", "Gangs need no objects.", 0);
  return text;
}

}  // namespace skiff::training
