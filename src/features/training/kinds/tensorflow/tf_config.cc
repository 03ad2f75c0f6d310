#include "features/training/kinds/tensorflow/tf_config.h"

#include <fmt/format.h>

#include <map>

namespace skiff::training {
namespace {

// Names are DNS labels and ports are numbers, so that nothing here needs escaping.
std::string host(const Job& job, const Role& role, std::int64_t index) {
  return fmt::format("\"{}.{}.svc:{}\"", replica_name(job, role, index), job.ns, role.port);
}

std::string hosts(const Job& job, const Role& role) {
  std::string out = "[";
  for (std::int64_t i = 0; i < role.replicas; ++i) {
    if (i > 0) out += ',';
    out += host(job, role, i);
  }
  return out + "]";
}

std::string task(const Role& role, std::int64_t index) {
  return fmt::format(R"({{"type":"{}","index":{}}})", role.lower, index);
}

// Every role with all of its hosts, roles in the order of their names: upstream writes a sorted map
// and people compare the text.
std::string full_cluster(const Job& job) {
  std::map<std::string_view, const Role*> sorted;
  for (const Role& role : job.roles) sorted[role.lower] = &role;
  std::string out = "{";
  for (const auto& [name, role] : sorted) {
    if (out.size() > 1) out += ',';
    out += fmt::format("\"{}\":{}", name, hosts(job, *role));
  }
  return out + "}";
}

// A worker that may come and go knows itself and the parameter servers, a parameter server only
// itself: nobody has to be told when the number of workers changes.
std::string sparse_cluster(const Job& job, const Role& role, std::int64_t index,
                           const std::string& servers) {
  if (role.name == "Worker") {
    return fmt::format(R"({{"worker":{{"{}":{}}},"ps":{}}})", index, host(job, role, index),
                       servers);
  }
  if (role.name == "PS") {
    return fmt::format(R"({{"worker":{{}},"ps":[{}]}})", host(job, role, index));
  }
  return R"({"worker":{},"ps":[]})";
}

}  // namespace

Environment tf_environment(const Job& job) {
  if (job.replicas() == 1) {
    return [](const Role&, std::int64_t) { return std::vector<EnvVar>{}; };
  }
  if (json::get_bool(job.spec(), {"enableDynamicWorker"}).value_or(false)) {
    const Role* ps = job.role("PS");
    return [&job, servers = ps == nullptr ? std::string("null") : hosts(job, *ps)](
               const Role& role, std::int64_t index) {
      return std::vector<EnvVar>{
          {"TF_CONFIG", fmt::format(R"({{"cluster":{},"task":{}}})",
                                    sparse_cluster(job, role, index, servers), task(role, index))}};
    };
  }
  return [cluster = full_cluster(job)](const Role& role, std::int64_t index) {
    return std::vector<EnvVar>{
        {"TF_CONFIG", fmt::format(R"({{"cluster":{},"task":{},"environment":"cloud"}})", cluster,
                                  task(role, index))}};
  };
}

}  // namespace skiff::training
