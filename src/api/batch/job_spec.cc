// The rules of a JobSpec, in Jobs and in the template of a CronJob.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "api/batch/batch.h"
#include "api/core/pod_template.h"
#include "api/rules.h"
#include "base/names.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::int64_t kMostIndexed = 100'000;  // completions that can be tracked one by one
constexpr std::int64_t kMostParallel = 10'000;  // at once, above that many completions
constexpr std::size_t kMostRules = 20, kMostExitCodes = 255, kMostPatterns = 20;
constexpr std::size_t kManagedByBytes = 63, kIndexesBytes = 64 * 1024;

std::optional<std::int64_t> number(const json::value& spec, std::string_view field) {
  return json::get_int(spec, {field});
}

void check_indexed(const json::value& spec, std::string_view path, Causes& out) {
  const auto completions = number(spec, "completions"), parallelism = number(spec, "parallelism");
  const auto failed = number(spec, "maxFailedIndexes");
  const std::string parallel_path = child(path, "parallelism");
  const std::string failed_path = child(path, "maxFailedIndexes");
  if (!completions) {
    out.push_back(schema::required(child(path, "completions"), "when completion mode is Indexed"));
  }
  if (parallelism && *parallelism > kMostIndexed) {
    out.push_back(
        schema::invalid(parallel_path, *parallelism,
                        "must be less than or equal to 100000 when completion mode is Indexed"));
  }
  if (completions && failed && *failed > *completions) {
    out.push_back(
        schema::invalid(failed_path, *failed, "must be less than or equal to completions"));
  }
  if (failed && *failed > kMostIndexed) {
    out.push_back(schema::invalid(failed_path, *failed, "must be less than or equal to 100000"));
  }
  if (!completions || *completions <= kMostIndexed || !present(spec, {"backoffLimitPerIndex"}))
    return;
  constexpr std::string_view kHigh =
      "must be less than or equal to 10000 when completions are above 100000 and used with backoff "
      "limit per index";
  if (!failed) {
    out.push_back(
        schema::required(failed_path, "must be specified when completions is above 100000"));
  }
  if (parallelism && *parallelism > kMostParallel) {
    out.push_back(schema::invalid(parallel_path, *parallelism, kHigh));
  }
  if (failed && *failed > kMostParallel) {
    out.push_back(schema::invalid(failed_path, *failed, kHigh));
  }
}

void check_completion_mode(const json::value& spec, std::string_view path, Causes& out) {
  const std::string_view mode = json::get_string(spec, {"completionMode"});
  if (present(spec, {"completionMode"}) && mode != "NonIndexed" && mode != "Indexed") {
    out.push_back(schema::unsupported(child(path, "completionMode"), json::string(mode),
                                      {"NonIndexed", "Indexed"}));
  }
  if (mode == "Indexed") check_indexed(spec, path, out);
  if (present(spec, {"completionMode"}) && mode != "NonIndexed") return;
  for (const std::string_view field : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
    if (const auto n = number(spec, field)) {
      out.push_back(schema::invalid(child(path, field), *n, "requires indexed completion mode"));
    }
  }
}

void check_exit_codes(const json::value& codes, const std::string& path,
                      const std::set<std::string_view>& containers, Causes& out) {
  const std::string_view op = json::get_string(codes, {"operator"});
  if (op.empty()) {
    out.push_back(schema::required(child(path, "operator"), R"(valid values: ["In" "NotIn"])"));
  } else if (op != "In" && op != "NotIn") {
    out.push_back(schema::unsupported(child(path, "operator"), json::string(op), {"In", "NotIn"}));
  }
  const std::string_view name = json::get_string(codes, {"containerName"});
  if (present(codes, {"containerName"}) && !containers.contains(name)) {
    out.push_back(
        schema::invalid(child(path, "containerName"), json::string(name),
                        "must be one of the container or initContainer names in the pod template"));
  }
  const json::array& values = json::get_array(codes, {"values"});
  const std::string values_path = child(path, "values");
  if (values.empty()) {
    const json::value shown = present(codes, {"values"}) ? json::value(values) : json::value();
    out.push_back(schema::invalid(values_path, shown, "at least one value is required"));
  } else if (values.size() > kMostExitCodes) {
    out.push_back(schema::too_many(values_path, values.size(), kMostExitCodes));
  }
  std::set<std::int64_t> seen;
  bool ordered = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t n = json::get_int(values[i], {}).value_or(0);
    if (op == "In" && n == 0) {
      out.push_back(schema::invalid(child(values_path, i), n, "must not be 0 for the In operator"));
    }
    if (!seen.insert(n).second) out.push_back(schema::duplicate(child(values_path, i), n));
    ordered = ordered && (i == 0 || json::get_int(values[i - 1], {}).value_or(0) <= n);
  }
  if (!ordered) out.push_back(schema::invalid(values_path, values, "must be ordered"));
}

void check_condition_patterns(const json::array& patterns, const std::string& path, Causes& out) {
  if (patterns.size() > kMostPatterns) {
    out.push_back(schema::too_many(path, patterns.size(), kMostPatterns));
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view type = json::get_string(patterns[i], {"type"});
    for (const std::string& bad : names::check_label_key(type)) {
      out.push_back(schema::invalid(child(at, "type"), json::string(type), bad));
    }
    const std::string_view status = json::get_string(patterns[i], {"status"});
    if (status.empty()) {
      out.push_back(
          schema::required(child(at, "status"), R"(valid values: ["False" "True" "Unknown"])"));
    } else if (!is_one_of(status, {"False", "True", "Unknown"})) {
      out.push_back(schema::unsupported(child(at, "status"), json::string(status),
                                        {"False", "True", "Unknown"}));
    }
  }
}

void check_failure_rule(const json::value& spec, const json::value& rule, const std::string& path,
                        const std::set<std::string_view>& containers, Causes& out) {
  const std::string_view action = json::get_string(rule, {"action"});
  const std::string at = child(path, "action");
  if (action.empty()) {
    out.push_back(
        schema::required(at, R"(valid values: ["Count" "FailIndex" "FailJob" "Ignore"])"));
  } else if (action == "FailIndex") {
    if (!present(spec, {"backoffLimitPerIndex"})) {
      out.push_back(
          schema::invalid(at, json::string(action), "requires the backoffLimitPerIndex to be set"));
    }
  } else if (!is_one_of(action, {"Count", "FailJob", "Ignore"})) {
    out.push_back(
        schema::unsupported(at, json::string(action), {"Count", "FailIndex", "FailJob", "Ignore"}));
  }
  const bool by_code = present(rule, {"onExitCodes"});
  const json::array& conditions = json::get_array(rule, {"onPodConditions"});
  if (by_code) {
    check_exit_codes(*json::find(rule, {"onExitCodes"}), child(path, "onExitCodes"), containers,
                     out);
  }
  if (!conditions.empty())
    check_condition_patterns(conditions, child(path, "onPodConditions"), out);
  if (by_code && !conditions.empty()) {
    out.push_back(schema::invalid_unshown(
        path, "specifying both OnExitCodes and OnPodConditions is not supported"));
  }
  if (!by_code && conditions.empty()) {
    out.push_back(schema::invalid_unshown(
        path, "specifying one of OnExitCodes and OnPodConditions is required"));
  }
}

void check_failure_policy(const json::value& spec, const std::string& path, Causes& out) {
  const json::array& rules = json::get_array(spec, {"podFailurePolicy", "rules"});
  const std::string at = child(path, "rules");
  if (rules.size() > kMostRules) out.push_back(schema::too_many(at, rules.size(), kMostRules));
  std::set<std::string_view> containers;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json::value& c : json::get_array(spec, {"template", "spec", list})) {
      containers.insert(json::get_string(c, {"name"}));
    }
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    check_failure_rule(spec, rules[i], child(at, i), containers, out);
  }
}

void check_success_rule(const json::value& rule, std::int64_t completions, const std::string& path,
                        Causes& out) {
  const auto wanted = number(rule, "succeededCount");
  const bool indexes = present(rule, {"succeededIndexes"});
  if (!wanted && !indexes) {
    out.push_back(schema::required(
        path, "at least one of succeededCount or succeededIndexes must be specified"));
  }
  std::int64_t total = 0;
  if (indexes) {
    const std::string at = child(path, "succeededIndexes");
    const std::string_view text = json::get_string(rule, {"succeededIndexes"});
    if (text.size() > kIndexesBytes) out.push_back(schema::too_long(at, kIndexesBytes));
    const auto counted = count_indexes(text, completions);
    if (counted) {
      total = *counted;
    } else {
      out.push_back(schema::invalid(
          at, json::string(text),
          fmt::format("error parsing succeededIndexes: {}", counted.error().message)));
    }
  }
  if (!wanted) return;
  const std::string at = child(path, "succeededCount");
  check_counts(rule, path, {"succeededCount"}, out);
  if (*wanted > completions) {
    out.push_back(schema::invalid(
        at, *wanted,
        fmt::format("must be less than or equal to {} (the number of specified completions)",
                    completions)));
  }
  if (indexes && *wanted > total) {
    out.push_back(schema::invalid(
        at, *wanted,
        fmt::format("must be less than or equal to {} (the number of indexes in the specified "
                    "succeededIndexes field)",
                    total)));
  }
}

void check_success_policy(const json::value& spec, const std::string& path, Causes& out) {
  if (json::get_string(spec, {"completionMode"}) != "Indexed") {
    out.push_back(schema::invalid(path, *json::find(spec, {"successPolicy"}),
                                  "requires indexed completion mode"));
    return;
  }
  const json::array& rules = json::get_array(spec, {"successPolicy", "rules"});
  const std::string at = child(path, "rules");
  if (rules.empty()) {
    out.push_back(schema::required(
        at, "at least one rules must be specified when the successPolicy is specified"));
  }
  if (rules.size() > kMostRules) out.push_back(schema::too_many(at, rules.size(), kMostRules));
  for (std::size_t i = 0; i < rules.size(); ++i) {
    check_success_rule(rules[i], count(spec, {"completions"}), child(at, i), out);
  }
}

void check_restart(const json::value& spec, std::string_view path, Causes& out) {
  const std::string_view policy = json::get_string(spec, {"template", "spec", "restartPolicy"});
  const std::string at = child(path, "template.spec.restartPolicy");
  if (policy.empty() || policy == "Always") {
    out.push_back(schema::required(at, R"(valid values: "OnFailure", "Never")"));
  } else if (policy != "OnFailure" && policy != "Never") {
    out.push_back(schema::unsupported(at, json::string(policy), {"OnFailure", "Never"}));
  } else if (present(spec, {"podFailurePolicy"}) && policy != "Never") {
    out.push_back(
        schema::invalid(at, json::string(policy),
                        R"(only "Never" is supported when podFailurePolicy is specified)"));
  }
}

Result<std::int64_t> parse_index(std::string_view text, std::int64_t completions) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(Code::kInvalid,
                fmt::format("cannot convert string to integer for index: \"{}\"", text));
  }
  if (n >= completions) return fail(Code::kInvalid, fmt::format("too large index: \"{}\"", text));
  return n;
}

std::string not_growing(std::int64_t before, std::int64_t now) {
  return fmt::format("non-increasing order, previous: {}, current: {}", before, now);
}

}  // namespace

Result<std::int64_t> count_indexes(std::string_view text, std::int64_t completions) {
  if (text.empty()) return 0;
  std::int64_t total = 0;
  std::optional<std::int64_t> last;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    if (ends.size() > 2) {
      return fail(Code::kInvalid,
                  fmt::format("the fragment \"{}\" violates the requirement that an index interval "
                              "can have at most two parts separated by '-'",
                              part));
    }
    SKIFF_ASSIGN(const std::int64_t from, parse_index(ends[0], completions));
    std::int64_t to = from;
    if (ends.size() == 2) {
      SKIFF_ASSIGN(to, parse_index(ends[1], completions));
      if (from >= to) return fail(Code::kInvalid, not_growing(from, to));
    }
    if (last && *last >= from) return fail(Code::kInvalid, not_growing(*last, from));
    total += to - from + 1;
    last = to;
  }
  return total;
}

void default_job_spec(json::object& spec) {
  default_pod_template(spec);
  json::object* policy = object_in(spec, "podFailurePolicy", false);
  json::value* rules = policy == nullptr ? nullptr : policy->if_contains("rules");
  if (rules == nullptr || !rules->is_array()) return;
  for (json::value& rule : rules->get_array()) {
    json::object* one = rule.if_object();
    json::value* patterns = one == nullptr ? nullptr : one->if_contains("onPodConditions");
    if (patterns == nullptr || !patterns->is_array()) continue;
    for (json::value& pattern : patterns->get_array()) {
      json::object* o = pattern.if_object();
      if (o != nullptr && text_in(*o, "status").empty()) (*o)["status"] = "True";
    }
  }
}

void check_job_policies(const json::value& spec, std::string_view path, Causes& out) {
  if (present(spec, {"podFailurePolicy"})) {
    check_failure_policy(spec, child(path, "podFailurePolicy"), out);
  }
  if (present(spec, {"successPolicy"}))
    check_success_policy(spec, child(path, "successPolicy"), out);
  const std::string_view policy = json::get_string(spec, {"podReplacementPolicy"});
  if (!present(spec, {"podReplacementPolicy"}) || policy == "Failed") return;
  const std::string at = child(path, "podReplacementPolicy");
  if (present(spec, {"podFailurePolicy"})) {
    out.push_back(schema::unsupported(at, json::string(policy), {"Failed"}));
  } else if (policy != "TerminatingOrFailed") {
    out.push_back(schema::unsupported(at, json::string(policy), {"Failed", "TerminatingOrFailed"}));
  }
}

void check_job_spec(const json::value& spec, std::string_view path, Causes& out) {
  static const json::value kNothing = json::object();
  check_counts(spec, path,
               {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"},
               out);
  if (present(spec, {"maxFailedIndexes"}) && !present(spec, {"backoffLimitPerIndex"})) {
    out.push_back(schema::required(child(path, "backoffLimitPerIndex"),
                                   "when maxFailedIndexes is specified"));
  }
  if (present(spec, {"managedBy"})) {
    const std::string_view manager = json::get_string(spec, {"managedBy"});
    check_domain_path(manager, child(path, "managedBy"), out);
    if (manager.size() > kManagedByBytes) {
      out.push_back(schema::too_long(child(path, "managedBy"), kManagedByBytes));
    }
  }
  check_completion_mode(spec, path, out);
  check_job_policies(spec, path, out);
  const json::value* pod = json::find(spec, {"template"});
  check_pod_template(pod == nullptr ? kNothing : *pod, child(path, "template"), out);
  check_restart(spec, path, out);
}

}  // namespace skiff::api
