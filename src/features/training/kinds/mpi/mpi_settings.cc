#include "features/training/kinds/mpi/mpi_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "base/names.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/kinds/mpi/mpi_versions.h"

namespace skiff::training {
namespace {

// v1's rule: a launcher that asks for accelerators computes, too.
bool asks_for_gpus(const Role& launcher) {
  const json::value* containers = json::find(*launcher.pod_template, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return false;
  return std::ranges::any_of(containers->get_array(), [](const json::value& container) {
    return std::ranges::any_of(
        json::get_object(container, {"resources", "limits"}),
        [](const auto& limit) { return std::string_view(limit.key()).contains("gpu"); });
  });
}

MpiImplementation read_implementation(std::string_view text) {
  if (text == "Intel") return MpiImplementation::kIntel;
  return text == "MPICH" ? MpiImplementation::kMpich : MpiImplementation::kOpenMpi;
}

json::value older_fields(const json::value& root) {
  Result<json::value> read = json::parse(api::annotation(root, kOlderFields));
  return read ? *std::move(read) : json::value();
}

}  // namespace

std::string written_version(const json::value& root) {
  if (api::annotation(root, kOlderFields).empty()) return "v2beta1";
  return std::string(json::get_string(older_fields(root), {kWrittenAs}, "v2beta1"));
}

bool written_as_v1(const json::value& root) { return written_version(root) == "v1"; }

MpiSettings read_mpi_settings(const Job& job) {
  const json::value& spec = job.spec();
  MpiSettings out{
      .slots = std::max<std::int64_t>(json::get_int(spec, {"slotsPerWorker"}).value_or(1), 0),
      .launcher_works = json::get_bool(spec, {"runLauncherAsWorker"}).value_or(false),
      .waits_for_workers =
          json::get_string(spec, {"launcherCreationPolicy"}) == "WaitForWorkersReady",
      .implementation = read_implementation(json::get_string(spec, {"mpiImplementation"}))};
  if (!api::annotation(*job.root, kOlderFields).empty()) {
    const json::value older = older_fields(*job.root);
    out.as_v1 = json::get_string(older, {kWrittenAs}) == "v1";
    // It becomes part of a script, and anybody may have written the annotation.
    const std::string_view main = json::get_string(older, {kMainContainer});
    if (names::check_dns1123_label(main).empty()) out.main_container = main;
  }
  const Role* launcher = job.role(kLauncher);
  if (out.as_v1 && launcher != nullptr && asks_for_gpus(*launcher)) out.launcher_works = true;
  return out;
}

std::string mpi_host(const Job& job, const MpiSettings& settings, std::string_view pod) {
  if (settings.as_v1) return std::string(pod);
  return fmt::format("{}.{}.{}.svc", pod, job.name, job.ns);
}

}  // namespace skiff::training
