#include "apiserver/wire/audit_ids.h"

#include <string>

#include "base/random.h"

namespace skiff::apiserver {

void AuditIds::stamp(const http::Request& request, http::Response& response) {
  constexpr std::size_t kLongest = 64;
  const std::string_view brought = http::header(request.headers, "Audit-Id");
  response.headers.emplace_back("Audit-Id",
                                brought.empty() || brought.size() > kLongest
                                    ? Random(next_.fetch_add(1, std::memory_order_relaxed)).uuid()
                                    : std::string(brought));
}

}  // namespace skiff::apiserver
