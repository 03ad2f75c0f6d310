// Patterns of schemas, compiled once.
#include <re2/re2.h>

#include <map>
#include <memory>
#include <mutex>

#include "schema/check.h"

namespace skiff::schema {
namespace {

// Far more than the CRDs of a cluster have; past it the cache starts anew.
constexpr std::size_t kMostPatterns = 2'000;

std::shared_ptr<const RE2> compiled(const std::string& pattern) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const RE2>> cache;
  const std::lock_guard lock(mutex);
  if (const auto at = cache.find(pattern); at != cache.end()) return at->second;
  if (cache.size() >= kMostPatterns) cache.clear();
  auto fresh = std::make_shared<const RE2>(pattern, RE2::Quiet);
  cache[pattern] = fresh;
  return fresh;
}

}  // namespace

bool matches_pattern(const std::string& pattern, std::string_view text) {
  const std::shared_ptr<const RE2> re = compiled(pattern);
  return re->ok() && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *re);
}

std::string pattern_error(const std::string& pattern) {
  const RE2 re(pattern, RE2::Quiet);
  return re.ok() ? std::string() : re.error();
}

}  // namespace skiff::schema
