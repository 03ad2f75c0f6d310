// /openapi/v3 and /openapi/v2: what kubectl reads to know what the server validates and to explain
// fields.
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

// Keeps the documents of the present kinds: kubectl asks for them before every apply, and they are
// large. Thread-safe.
class OpenApi {
 public:
  explicit OpenApi(const SchemaGate& gate) : gate_(gate) {}
  // Nothing where there is no such document.
  std::optional<http::Response> serve(const std::shared_ptr<const KindTable>& kinds,
                                      const http::Request& request, const http::Url& url);

 private:
  struct Document {
    std::string body = {};
    std::string tag = {};
  };
  struct Documents {
    std::map<std::string, Document> v3 = {};  // "apis/batch/v1"
    std::string index = {};                   // of v3
  };
  struct V2 {
    Document json = {};
    Document protobuf = {};
  };
  std::shared_ptr<const Documents> documents(const std::shared_ptr<const KindTable>& kinds);
  // Made when first asked for: only old clients do.
  std::shared_ptr<const V2> v2(const std::shared_ptr<const KindTable>& kinds);
  std::optional<http::Response> serve_v2(const std::shared_ptr<const KindTable>& kinds,
                                         const http::Request& request);

  const SchemaGate& gate_;
  std::mutex lock_;
  std::shared_ptr<const KindTable> kinds_;
  std::shared_ptr<const Documents> documents_;
  std::mutex v2_lock_;
  std::shared_ptr<const KindTable> v2_kinds_;
  std::shared_ptr<const V2> v2_;
};

}  // namespace skiff::apiserver
