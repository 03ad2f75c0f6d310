#include "cli/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "api/meta.h"
#include "base/quantity.h"
#include "cli/follow.h"
#include "cli/printer.h"

namespace skiff::cli {
namespace {

constexpr std::int64_t kMi = 1024 * 1024;
constexpr std::string_view kGpu = "nvidia.com/gpu", kGpuMemory = "nvidia.com/gpu.memory";
constexpr std::string_view kNetworkIn = "skiff.dev/network-in",
                           kNetworkOut = "skiff.dev/network-out";

struct Amounts {
  Quantity cpu = {};
  Quantity memory = {};
};

struct Line {
  std::vector<std::string> names = {};
  std::optional<Quantity> gpus = {};  // busy ones; absent: it has none
  Quantity gpu_memory = {};
  std::pair<std::string, std::string> network = {};  // in and out; empty: not known
  Amounts used = {};
  bool measured = true;
  Amounts of = {};  // what it could use at most; zero: not known
};

Quantity amount(const json::value& object, std::string_view place, std::string_view resource) {
  const json::value* found = json::find(object, {place, resource});
  return found == nullptr ? Quantity() : Quantity::from_json(*found).value_or(Quantity());
}

Amounts usage_of(const json::value& object) {
  return {.cpu = amount(object, "usage", "cpu"), .memory = amount(object, "usage", "memory")};
}

void order(std::vector<Line>& lines, const std::string& by) {
  std::ranges::sort(lines, [&](const Line& a, const Line& b) {
    if (by == "cpu" && a.used.cpu != b.used.cpu) return a.used.cpu > b.used.cpu;
    if (by == "memory" && a.used.memory != b.used.memory) return a.used.memory > b.used.memory;
    return a.names < b.names;
  });
}

std::string cpu_text(const Amounts& used) { return fmt::format("{}m", used.cpu.milli()); }
std::string memory_text(const Amounts& used) {
  return fmt::format("{}Mi", used.memory.value() / kMi);
}

std::string rate_text(const Quantity& bytes) {
  const double k = static_cast<double>(bytes.value()) / 1000;
  return k < 1000 ? fmt::format("{:.1f}kB/s", k) : fmt::format("{:.1f}MB/s", k / 1000);
}

std::string share(std::int64_t used, std::int64_t of) {
  return of > 0 ? fmt::format("{}%", used * 100 / of) : "<unknown>";
}

}  // namespace

std::string top_pods(const std::vector<Object>& pods, const TopForm& form) {
  std::vector<Line> lines;
  for (const Object& pod : pods) {
    Line whole;
    if (form.with_namespace) whole.names.emplace_back(api::ns(*pod));
    whole.names.emplace_back(api::name(*pod));
    for (const json::value& container : json::get_array(*pod, {"containers"})) {
      const Amounts used = usage_of(container);
      if (form.containers) {
        Line line{.names = whole.names, .used = used};
        line.names.emplace_back(json::get_string(container, {"name"}));
        lines.push_back(std::move(line));
      }
      whole.used.cpu += used.cpu;
      whole.used.memory += used.memory;
    }
    if (!form.containers) lines.push_back(std::move(whole));
  }
  order(lines, form.sort_by);
  std::vector<std::vector<std::string>> rows;
  if (form.with_header) {
    std::vector<std::string>& header = rows.emplace_back();
    if (form.with_namespace) header.emplace_back("NAMESPACE");
    header.emplace_back(form.containers ? "POD" : "NAME");
    if (form.containers) header.emplace_back("NAME");
    header.insert(header.end(), {"CPU(cores)", "MEMORY(bytes)"});
  }
  for (const Line& line : lines) {
    std::vector<std::string>& row = rows.emplace_back(line.names);
    row.insert(row.end(), {cpu_text(line.used), memory_text(line.used)});
  }
  return columns(rows);
}

std::string top_replicas(const std::vector<Object>& pods, const TopForm& form) {
  std::vector<Line> lines;
  bool gpus = false, network = false;
  for (const Object& pod : pods) {
    Line line;
    if (form.with_namespace) line.names.emplace_back(api::ns(*pod));
    line.names.emplace_back(api::label(*pod, "training.kubeflow.org/job-name"));
    line.names.push_back(replica_name(*pod));
    for (const json::value& container : json::get_array(*pod, {"containers"})) {
      const Amounts used = usage_of(container);
      line.used.cpu += used.cpu;
      line.used.memory += used.memory;
      if (json::find(container, {"usage", kGpu}) != nullptr) {
        line.gpus = line.gpus.value_or(Quantity()) + amount(container, "usage", kGpu);
        line.gpu_memory += amount(container, "usage", kGpuMemory);
      }
      if (json::find(container, {"usage", kNetworkIn}) == nullptr) continue;
      line.network = {rate_text(amount(container, "usage", kNetworkIn)),
                      rate_text(amount(container, "usage", kNetworkOut))};
    }
    gpus = gpus || line.gpus;
    network = network || !line.network.first.empty();
    lines.push_back(std::move(line));
  }
  order(lines, form.sort_by);
  std::vector<std::vector<std::string>> rows;
  if (form.with_header) {
    std::vector<std::string>& header = rows.emplace_back();
    if (form.with_namespace) header.emplace_back("NAMESPACE");
    header.insert(header.end(), {"JOB", "REPLICA", "CPU(cores)", "MEMORY(bytes)"});
    if (gpus) header.insert(header.end(), {"GPU(%)", "GPU-MEMORY(bytes)"});
    if (network) header.insert(header.end(), {"NET-IN", "NET-OUT"});
  }
  for (const Line& line : lines) {
    std::vector<std::string>& row = rows.emplace_back(line.names);
    row.insert(row.end(), {cpu_text(line.used), memory_text(line.used)});
    if (gpus) {
      row.push_back(line.gpus ? fmt::format("{}%", line.gpus->milli() / 10) : "<none>");
      row.push_back(line.gpus ? fmt::format("{}Mi", line.gpu_memory.value() / kMi) : "<none>");
    }
    if (!network) continue;
    const bool known = !line.network.first.empty();
    row.push_back(known ? line.network.first : "<unknown>");
    row.push_back(known ? line.network.second : "<unknown>");
  }
  return columns(rows);
}

std::string top_nodes(const std::vector<Object>& metrics, const std::vector<Object>& nodes,
                      const TopForm& form) {
  std::map<std::string, Line> by_name;
  for (const Object& node : nodes) {
    const std::string name(api::name(*node));
    by_name[name] = {.names = {name}, .measured = false};
    const json::value* status = json::find(*node, {"status"});
    if (status == nullptr) continue;
    by_name[name].of = {.cpu = amount(*status, "allocatable", "cpu"),
                        .memory = amount(*status, "allocatable", "memory")};
  }
  for (const Object& one : metrics) {
    const std::string name(api::name(*one));
    Line& line = by_name[name];
    line.names = {name};
    line.used = usage_of(*one);
    line.measured = true;
    if (json::find(*one, {"usage", kGpu}) == nullptr) continue;
    line.gpus = amount(*one, "usage", kGpu);
    line.gpu_memory = amount(*one, "usage", kGpuMemory);
  }
  std::vector<Line> lines;
  for (auto& [name, line] : by_name) lines.push_back(std::move(line));
  order(lines, form.sort_by);
  std::vector<std::vector<std::string>> rows;
  const bool gpus = std::ranges::any_of(lines, [](const Line& l) { return l.gpus.has_value(); });
  if (form.with_header) {
    rows.push_back({"NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"});
    if (gpus) rows.back().insert(rows.back().end(), {"GPU(%)", "GPU-MEMORY(bytes)"});
  }
  for (const Line& line : lines) {
    std::vector<std::string>& row = rows.emplace_back(line.names);
    if (line.measured) {
      row.insert(row.end(),
                 {cpu_text(line.used), share(line.used.cpu.milli(), line.of.cpu.milli()),
                  memory_text(line.used), share(line.used.memory.value(), line.of.memory.value())});
    } else {
      row.insert(row.end(), 4, "<unknown>");
    }
    if (!gpus) continue;
    row.push_back(line.gpus ? fmt::format("{}%", line.gpus->milli() / 10) : "<none>");
    row.push_back(line.gpus ? fmt::format("{}Mi", line.gpu_memory.value() / kMi) : "<none>");
  }
  return columns(rows);
}

}  // namespace skiff::cli
