// /openapi/v3: what kubectl reads to know what the server validates and to explain fields.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "apiserver/kinds.h"
#include "apiserver/schema_gate.h"
#include "base/http.h"

namespace skiff::apiserver {

// Keeps the documents of the present kinds: kubectl asks for them before every apply, and the one
// of the core group is large. Thread-safe.
class OpenApi {
 public:
  explicit OpenApi(const SchemaGate& gate) : gate_(gate) {}
  // Nothing where there is no such document.
  std::optional<http::Response> serve(const std::shared_ptr<const KindTable>& kinds,
                                      const http::Request& request, const http::Url& url);

 private:
  using Documents = std::map<std::string, std::string>;  // "apis/batch/v1" -> document
  std::shared_ptr<const Documents> documents(const std::shared_ptr<const KindTable>& kinds);

  const SchemaGate& gate_;
  std::mutex lock_;
  std::shared_ptr<const KindTable> kinds_;
  std::shared_ptr<const Documents> documents_;
};

}  // namespace skiff::apiserver
