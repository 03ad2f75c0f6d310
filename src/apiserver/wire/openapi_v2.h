// OpenAPI v2: one document of all kinds, which kubectl up to 1.24 validates and explains by. Made
// from the v3 documents, so that both tell the same. Each of them gives one part, written once and
// kept: when a definition changes, only its own part is written again.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::apiserver {

inline constexpr std::string_view kOpenApiV2Type =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

// The second is gnostic's protobuf, the only form that kubectl reads.
enum class FormV2 { kJson, kProtobuf };

// What one group and version has in the document, in one form.
struct PartV2 {
  struct Member {
    std::string name = {};
    std::string text = {};  // as it stands in the document, with its name
    // Of a definition: the part serves this kind, others only refer to it.
    bool own = false;
  };
  std::vector<Member> paths = {};
  std::vector<Member> definitions = {};
};
PartV2 openapi_v2_part(const json::object& v3_document, FormV2 form);
std::string openapi_v2(const std::vector<std::shared_ptr<const PartV2>>& parts, FormV2 form);

// Members of the document in gnostic's protobuf, and the document around those that are written.
std::string gnostic_path(std::string_view name, const json::object& path);
std::string gnostic_definition(std::string_view name, const json::object& schema);
std::string gnostic_document(const json::object& head, std::string_view paths,
                             std::string_view definitions);

}  // namespace skiff::apiserver
