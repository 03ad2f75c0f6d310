// Patterns of schemas, compiled once.
#include <fmt/format.h>
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

// Kubernetes reads patterns with Go's library, which names the same faults so.
std::string_view go_words(RE2::ErrorCode code) {
  switch (code) {
    case RE2::ErrorBadEscape:
    case RE2::ErrorTrailingBackslash:
      return code == RE2::ErrorBadEscape ? "invalid escape sequence"
                                         : "trailing backslash at end of expression";
    case RE2::ErrorBadCharClass:
      return "invalid character class";
    case RE2::ErrorBadCharRange:
      return "invalid character class range";
    case RE2::ErrorMissingBracket:
      return "missing closing ]";
    case RE2::ErrorMissingParen:
      return "missing closing )";
    case RE2::ErrorUnexpectedParen:
      return "unexpected )";
    case RE2::ErrorRepeatArgument:
      return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize:
      return "invalid repeat count";
    case RE2::ErrorRepeatOp:
      return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp:
      return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadUTF8:
      return "invalid UTF-8";
    case RE2::ErrorBadNamedCapture:
      return "invalid named capture";
    case RE2::ErrorPatternTooLarge:
      return "expression too large";
    default:
      return "regexp/syntax: internal error";
  }
}

}  // namespace

bool matches_pattern(const std::string& pattern, std::string_view text) {
  const std::shared_ptr<const RE2> re = compiled(pattern);
  return re->ok() && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *re);
}

std::string pattern_error(const std::string& pattern) {
  const RE2 re(pattern, RE2::Quiet);
  if (re.ok()) return {};
  return fmt::format("error parsing regexp: {}: `{}`", go_words(re.error_code()), re.error_arg());
}

}  // namespace skiff::schema
