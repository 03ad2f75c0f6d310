// The one place where an exception becomes an error: around code that decides about what others
// wrote. Such code throws only by mistake (a JSON value of another kind than it took for granted),
// and a mistake about one object must not end the service of all others.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace skiff {

namespace detail {

template <class T>
struct Guarded {
  using Type = Result<T>;
};
template <class T>
struct Guarded<Result<T>> {
  using Type = Result<T>;
};

}  // namespace detail

// What `call` returns, or an error with the words of what it throws. A Result stays as it is.
// kUnknown: unlike kInternal it says of no write that it may have been done.
template <class Call>
typename detail::Guarded<std::invoke_result_t<Call>>::Type guarded(Call&& call) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      std::forward<Call>(call)();
      return {};
    } else {
      return std::forward<Call>(call)();
    }
  } catch (const std::exception& exception) {
    return fail(Code::kUnknown, std::string("a bug in Skiff: ") + exception.what());
  } catch (...) {
    return fail(Code::kUnknown, "a bug in Skiff: an exception without words");
  }
}

}  // namespace skiff
