#include "features/training/engine/history.h"

#include <charconv>

namespace skiff::training {
namespace {

std::map<std::int64_t, std::int64_t> read_attempts(const json::value& role) {
  std::map<std::int64_t, std::int64_t> out;
  for (const auto& [key, value] : json::get_object(role, {"attempts"})) {
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
    if (error != std::errc{} || end != key.data() + key.size() || index < 0) continue;
    if (value.is_int64() && value.get_int64() > 0) out[index] = value.get_int64();
  }
  return out;
}

json::object to_json(const RoleHistory& role) {
  json::object out;
  if (role.started.size() > 0) out["started"] = role.started.text();
  if (role.succeeded.size() > 0) out["succeeded"] = role.succeeded.text();
  if (!role.attempts.empty()) {
    json::object& attempts = out["attempts"].emplace_object();
    for (const auto& [index, count] : role.attempts) attempts[std::to_string(index)] = count;
  }
  return out;
}

}  // namespace

std::int64_t RoleHistory::attempt(std::int64_t index) const {
  const auto found = attempts.find(index);
  return found == attempts.end() ? 0 : found->second;
}

void RoleHistory::next_attempt(std::int64_t index, std::int64_t times) {
  attempts[index] += times;
  started.erase(index);
}

RoleHistory& History::role(std::string_view name) {
  const auto found = roles.find(name);
  if (found != roles.end()) return found->second;
  return roles[std::string(name)];
}

void History::witness_attempt(std::string_view role_name, std::int64_t index,
                              std::int64_t attempt) {
  RoleHistory& history = role(role_name);
  const std::int64_t known = history.attempt(index);
  if (attempt <= known) return;
  history.attempts[index] = attempt;
  restarts += attempt - known;
}

void History::replace(std::string_view role_name, std::int64_t index) {
  role(role_name).next_attempt(index);
  ++restarts;
}

void History::replace_all(const Job& job, std::int64_t times) {
  for (const Role& each : job.roles) {
    RoleHistory& history = role(each.name);
    for (std::int64_t i = 0; i < each.replicas; ++i) history.next_attempt(i, times);
    history.succeeded = {};
  }
  restarts += times;
}

void History::forget_pods() {
  for (auto& [name, history] : roles) {
    history.started = {};
    history.succeeded = {};
  }
}

void History::truncate(const Job& job) {
  std::erase_if(roles, [&](const auto& entry) { return job.role(entry.first) == nullptr; });
  for (auto& [name, history] : roles) {
    const std::int64_t replicas = job.role(name)->replicas;
    history.started.truncate(replicas);
    history.succeeded.truncate(replicas);
    history.attempts.erase(history.attempts.lower_bound(replicas), history.attempts.end());
  }
}

History read_history(const json::value& status) {
  History history;
  history.restarts = json::get_int(status, {"restarts"}).value_or(0);
  for (const auto& [name, role] : json::get_object(status, {"replicaHistory"})) {
    history.roles[std::string(name)] = {
        .started = IndexSet::parse(json::get_string(role, {"started"})),
        .succeeded = IndexSet::parse(json::get_string(role, {"succeeded"})),
        .attempts = read_attempts(role)};
  }
  return history;
}

void write_history(const History& history, json::object& status) {
  if (history.restarts > 0 || status.contains("restarts")) status["restarts"] = history.restarts;
  json::object roles;
  for (const auto& [name, role] : history.roles) {
    json::object entry = to_json(role);
    if (!entry.empty()) roles[name] = std::move(entry);
  }
  if (roles.empty()) {
    status.erase("replicaHistory");
  } else {
    status["replicaHistory"] = std::move(roles);
  }
}

}  // namespace skiff::training
