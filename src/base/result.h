// Errors as values. `Error` carries what a Kubernetes Status carries, so that a sentence written by
// a validator reaches kubectl without translation.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skiff {

// One to one with Kubernetes `Status.reason`; the HTTP code follows from it (http_code()).
enum class Code {
  kBadRequest,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kMethodNotAllowed,
  kNotAcceptable,
  kAlreadyExists,
  kConflict,
  kExpired,  // 410: history is gone, list again
  kTooLarge,
  kUnsupportedMediaType,
  kInvalid,
  kTooManyRequests,
  kInternal,
  kUnknown,  // 500 for which Kubernetes gives no reason
  kServiceUnavailable,
  kTimeout,
};

int http_code(Code code);
std::string_view reason(Code code);
// The code for a Status read from a server; kInternal where neither tells.
Code code_from_status(int http_status, std::string_view reason);

struct Cause {
  std::string field = {};   // JSON path such as spec.containers[0].image
  std::string reason = {};  // FieldValueRequired, FieldValueInvalid, ...
  std::string message = {};

  bool operator==(const Cause&) const = default;
};

struct Error {
  Code code = Code::kInternal;
  std::string message = {};
  std::vector<Cause> causes = {};
  // What Status.details says about the object, where it is known.
  std::string group = {};
  std::string resource = {};  // plural
  std::string name = {};
  std::optional<int> retry_after_s = {};
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected(Error{.code = code, .message = std::move(message)});
}

// SKIFF_TRY(expr): returns the error of `expr` to the caller, drops the value.
#define SKIFF_TRY(expr)                                            \
  do {                                                             \
    auto skiff_try_result = (expr);                                \
    if (!skiff_try_result) {                                       \
      return std::unexpected(std::move(skiff_try_result).error()); \
    }                                                              \
  } while (false)

#define SKIFF_CONCAT_INNER(a, b) a##b
#define SKIFF_CONCAT(a, b) SKIFF_CONCAT_INNER(a, b)

// SKIFF_ASSIGN(auto x, expr): the value of `expr`, or its error is returned to the caller.
#define SKIFF_ASSIGN(declaration, expr) \
  SKIFF_ASSIGN_INNER(SKIFF_CONCAT(skiff_result_, __LINE__), declaration, expr)
#define SKIFF_ASSIGN_INNER(result, declaration, expr)  \
  auto result = (expr);                                \
  if (!result) {                                       \
    return std::unexpected(std::move(result).error()); \
  }                                                    \
  declaration = std::move(*result)

}  // namespace skiff
