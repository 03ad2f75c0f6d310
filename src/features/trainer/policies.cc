#include "features/trainer/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "base/quantity.h"
#include "base/strings.h"

namespace skiff::trainer {
namespace {

constexpr std::string_view kIndexField =
    "metadata.annotations['batch.kubernetes.io/job-completion-index']";
constexpr std::array<std::string_view, 5> kTorchNames = {
    "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"};
constexpr std::array<std::string_view, 4> kXgboostNames = {"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT",
                                                           "DMLC_TASK_ID", "DMLC_NUM_WORKER"};

constexpr std::array<std::string_view, 4> kMpiNames = {
    "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots"};

json::value policy_variable(std::string_view name, std::string value) {
  return json::object{{"name", json::string(name)}, {"value", json::string(value)}};
}

json::value index_variable(std::string_view name) {
  return json::object{
      {"name", json::string(name)},
      {"valueFrom",
       {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", json::string(kIndexField)}}}}}};
}

// Of requests, else of limits.
std::int64_t amount(const json::value& resources, auto&& named) {
  for (const std::string_view list : {"requests", "limits"}) {
    for (const auto& [name, quantity] : json::get_object(resources, {list})) {
      if (!named(std::string_view(name))) continue;
      const std::int64_t value = Quantity::from_json(quantity).value_or(Quantity()).value();
      if (value > 0) return value;
    }
  }
  return 0;
}

std::int64_t cpus(const json::value& resources) {
  return amount(resources, [](std::string_view name) { return name == "cpu"; });
}

std::string as_text(const json::value* value) {
  if (value == nullptr) return {};
  if (value->is_string()) return std::string(json::view(value->get_string()));
  if (value->is_int64()) return std::to_string(value->get_int64());
  return {};
}

std::string asked_text(const json::value& trainjob) {
  return as_text(json::find(trainjob, {"spec", "trainer", "numProcPerNode"}));
}

// Words that mean an amount become it.
std::string counted(std::string asked, const json::value& resources) {
  if (asked == "cpu") return std::to_string(std::max<std::int64_t>(1, cpus(resources)));
  if (asked == "gpu") return std::to_string(std::max<std::int64_t>(1, gpus_of(resources)));
  return asked;
}

}  // namespace

std::int64_t gpus_of(const json::value& resources) {
  return amount(resources,
                [](std::string_view name) { return lower(name).find("gpu") != std::string::npos; });
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return {};
  return out;
}

std::optional<std::int64_t> asked_processes(const json::value& trainjob,
                                            const json::value& resources) {
  return whole_number(counted(asked_text(trainjob), resources));
}

std::string processes_of(const json::value& runtime, const json::value& trainjob,
                         const json::value& resources) {
  std::string asked = asked_text(trainjob);
  if (asked.empty()) {
    asked = as_text(json::find(runtime, {"spec", "mlPolicy", "torch", "numProcPerNode"}));
  }
  if (asked.empty()) asked = "auto";
  if (asked == "auto" && gpus_of(resources) == 0) asked = "cpu";
  return counted(std::move(asked), resources);
}

std::string first_node(const Placement& placement) {
  return fmt::format("{}-{}-0-0.{}", placement.job, placement.part, placement.subdomain);
}

std::string_view framework_of(const json::value& runtime) {
  for (const std::string_view known : {"torch", "jax", "xgboost", "mpi", "flux"}) {
    const json::value* found = json::find(runtime, {"spec", "mlPolicy", known});
    if (found != nullptr && found->is_object()) return known;
  }
  return {};
}

json::array environment(const json::value& runtime, const json::value& trainjob,
                        const Placement& placement, const json::value& resources) {
  const std::string_view framework = framework_of(runtime);
  const std::string nodes = std::to_string(placement.nodes);
  if (framework == "torch") {
    return {policy_variable("PET_NNODES", nodes),
            policy_variable("PET_NPROC_PER_NODE", processes_of(runtime, trainjob, resources)),
            index_variable("PET_NODE_RANK"),
            policy_variable("PET_MASTER_ADDR", first_node(placement)),
            policy_variable("PET_MASTER_PORT", std::to_string(kPort))};
  }
  if (framework == "jax") {
    return {policy_variable("JAX_NUM_PROCESSES", nodes), index_variable("JAX_PROCESS_ID"),
            policy_variable("JAX_COORDINATOR_ADDRESS",
                            fmt::format("{}:{}", first_node(placement), kPort))};
  }
  if (framework == "xgboost") {
    // The bound keeps the product from overflowing.
    const std::int64_t each = std::clamp<std::int64_t>(gpus_of(resources), 1, 1LL << 31);
    const std::int64_t workers = std::min<std::int64_t>(placement.nodes, 1LL << 31) * each;
    return {policy_variable("DMLC_TRACKER_URI", first_node(placement)),
            policy_variable("DMLC_TRACKER_PORT", std::to_string(kPort)),
            index_variable("DMLC_TASK_ID"),
            policy_variable("DMLC_NUM_WORKER", std::to_string(workers))};
  }
  return {};
}

bool reserved(std::string_view framework, std::string_view variable) {
  if (framework == "torch") return std::ranges::count(kTorchNames, variable) > 0;
  if (framework == "mpi") return std::ranges::count(kMpiNames, variable) > 0;
  if (framework == "xgboost") return std::ranges::count(kXgboostNames, variable) > 0;
  return false;
}

}  // namespace skiff::trainer
