// What the runtime asks of the answers to its writes. For the files of the runtime only.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "client/client.h"
#include "control/controller.h"

namespace skiff::control {

inline constexpr Duration kBackoffMin = std::chrono::milliseconds(5);
inline constexpr Duration kBackoffMax = std::chrono::seconds(60);

inline Duration backoff(unsigned failures, Duration max) {
  // 2^20 times the minimum is past any maximum, and the shift stays far from overflow.
  return std::min(max, kBackoffMin * (std::int64_t{1} << std::min(failures, 20U)));
}

inline Duration wait_after(unsigned failures, const Error& error) {
  return std::max<Duration>(backoff(failures, kBackoffMax),
                            std::chrono::seconds(error.retry_after_s.value_or(0)));
}

// The failing write is the last one tried; those before it may carry errors too, because a
// transaction that fails undoes them.
inline const Error* failure(const std::vector<Result<json::value>>& answers) {
  return answers.empty() || answers.back() ? nullptr : &answers.back().error();
}

// Asking again soon is no use: the server understood it and would not have it.
inline bool refuses(Code code) { return code == Code::kForbidden || code == Code::kInvalid; }

// What is asked of a write once it is answered. The objects themselves are large and may be many.
inline std::vector<client::Write> without_bodies(const std::vector<client::Write>& writes) {
  std::vector<client::Write> out;
  out.reserve(writes.size());
  for (const client::Write& write : writes) {
    out.push_back({.verb = write.verb,
                   .resource = write.resource,
                   .ns = write.ns,
                   .name = write.name,
                   .subresource = write.subresource,
                   .uid = write.uid,
                   .resource_version = write.resource_version});
    if (!write.name.empty()) continue;
    out.back().body = json::object{{"metadata", {{"name", json::string(api::name(write.body))}}}};
  }
  return out;
}

}  // namespace skiff::control
