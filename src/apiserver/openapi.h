// /openapi/v3 and /openapi/v2: what kubectl reads to know what the server validates and to explain
// fields.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/kinds.h"
#include "apiserver/schema_gate.h"
#include "apiserver/wire/openapi_v2.h"
#include "base/http.h"

namespace skiff::apiserver {

// Keeps the documents of the present kinds: kubectl asks for them before every apply, and they are
// large. Each group and version is written when it is first asked for, and again only when one of
// its own kinds has changed. Thread-safe.
class OpenApi {
 public:
  explicit OpenApi(const SchemaGate& gate) : gate_(gate) {}
  // Nothing where there is no such document.
  std::optional<http::Response> serve(const std::shared_ptr<const KindTable>& kinds,
                                      const http::Request& request, const http::Url& url);
  // How many documents of one group and version were written since the start.
  std::uint64_t written() const;

 private:
  struct Document {
    std::string body = {};
    std::string tag = {};
  };
  // One group and version. What nobody has asked for is null.
  struct Part {
    std::vector<ServedKindPtr> kinds = {};  // it is made of
    std::shared_ptr<const Document> v3 = {};
    std::array<std::shared_ptr<const PartV2>, 2> v2 = {};  // by FormV2
  };
  // These need the lock.
  void follow(const std::shared_ptr<const KindTable>& kinds);
  Part& part(const std::string& group, const std::string& version);
  std::shared_ptr<const Document> v3(const std::string& group, const std::string& version);
  std::shared_ptr<const PartV2> v2(const std::string& group, const std::string& version,
                                   FormV2 form);
  const std::string& index();

  std::optional<http::Response> serve_v3(const std::shared_ptr<const KindTable>& kinds,
                                         const http::Request& request, const http::Url& url);
  std::optional<http::Response> serve_v2(const std::shared_ptr<const KindTable>& kinds,
                                         const http::Request& request);
  http::Response whole_v2(const std::shared_ptr<const KindTable>& kinds,
                          const http::Request& request, FormV2 form);

  const SchemaGate& gate_;
  mutable std::mutex lock_;
  std::map<std::string, Part> parts_;       // "apis/batch/v1"
  std::shared_ptr<const KindTable> kinds_;  // that the following are of
  std::string index_;                       // of v3; empty: not made yet
  std::array<std::string, 2> v2_tags_;      // by FormV2; empty: not known yet
  std::uint64_t written_ = 0;
};

}  // namespace skiff::apiserver
