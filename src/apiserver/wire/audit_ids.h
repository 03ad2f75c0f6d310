// Audit-Id: a name for each request, which clients may also bring themselves.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/http.h"

namespace skiff::apiserver {

class AuditIds {
 public:
  explicit AuditIds(std::uint64_t seed) : next_(seed) {}
  void stamp(const http::Request& request, http::Response& response);

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace skiff::apiserver
