#include "node/token_cache.h"

#include <fmt/format.h>

namespace skiff::node {
namespace {

constexpr std::chrono::hours kAgeMax{24};

std::string token_key(const TokenWish& wish) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", wish.pod_uid, wish.ns, wish.account, wish.pod,
                     wish.audience, wish.seconds);
}

}  // namespace

bool renewal_due(Duration age, Duration life) { return age >= kAgeMax || age * 5 >= life * 4; }

Result<std::string> TokenCache::get(const TokenWish& wish) {
  const std::string key = token_key(wish);
  const auto found = tokens_.find(key);
  const Time now = clock_.now();
  const std::chrono::seconds life(wish.seconds);
  // A clock that was set back makes a token of the future, whose age says nothing.
  const bool known = found != tokens_.end() && found->second.since <= now;
  if (known && !renewal_due(now - found->second.since, life)) return found->second.token;
  Result<std::string> fresh = source_(wish);
  if (fresh) {
    tokens_[key] = {.pod_uid = wish.pod_uid, .token = *fresh, .since = now};
  } else if (known && now < found->second.since + life) {
    return found->second.token;
  }
  return fresh;
}

void TokenCache::forget(std::string_view pod_uid) {
  std::erase_if(tokens_, [&](const auto& entry) { return entry.second.pod_uid == pod_uid; });
}

}  // namespace skiff::node
