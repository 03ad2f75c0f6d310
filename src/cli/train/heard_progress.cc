#include "cli/train/heard_progress.h"

#include <array>

#include "cli/follow.h"

namespace skiff::cli {
namespace {

std::int64_t progress_number(const json::object& progress, std::string_view field) {
  const json::value* found = progress.if_contains(field);
  return found != nullptr && found->is_int64() ? found->as_int64() : 0;
}

// Whether both count the same thing, and the one that was heard is further on.
bool follows(const json::object& heard, const json::object& told) {
  for (const std::string_view total : {"totalSteps", "totalEpochs"}) {
    if (progress_number(heard, total) != progress_number(told, total)) return false;
  }
  const auto place = [](const json::object& progress) {
    return std::array{progress_number(progress, "percent"), progress_number(progress, "epoch"),
                      progress_number(progress, "step")};
  };
  return place(heard) > place(told);
}

}  // namespace

void HeardProgress::hear(std::string_view replica, std::string_view line, Time at) {
  const auto said = node::parse_progress(last_drawn(line));
  if (!said) return;
  const std::lock_guard lock(mutex_);
  replicas_[std::string(replica)].take(*said, at);
}

json::value HeardProgress::brought_up_to_date(const json::value& job) const {
  const json::object& told = json::get_object(job, {"status", "progress"});
  const std::string_view replica = json::get_string(job, {"status", "progress", "replica"});
  const std::lock_guard lock(mutex_);
  const auto found = replicas_.find(replica);
  if (found == replicas_.end()) return job;
  json::object heard = found->second.told();
  if (!follows(heard, told)) return job;
  heard["replica"] = replica;
  json::value out = job;
  out.as_object()["status"].as_object()["progress"] = std::move(heard);
  return out;
}

}  // namespace skiff::cli
