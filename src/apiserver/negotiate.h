// What the Accept header asks for: in which encoding, and in which shape.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/result.h"

namespace skiff::apiserver {

struct MediaRange {
  std::string type = {};  // lower case, without parameters
  std::map<std::string, std::string, std::less<>> params = {};
  double quality = 1;

  std::string_view param(std::string_view name) const;
  bool matches(std::string_view media_type) const;
};
// Best first, as the header or quality orders them. No header at all is */*.
std::vector<MediaRange> parse_accept(std::string_view accept);

enum class Encoding { kJson, kYaml };
enum class Shape {
  kObject,               // the objects themselves
  kTable,                // meta.k8s.io Table
  kPartialMetadata,      // PartialObjectMetadata
  kPartialMetadataList,  // PartialObjectMetadataList
};

struct Wanted {
  Shape shape = Shape::kObject;
  std::string version = "v1";  // of meta.k8s.io
  Encoding encoding = Encoding::kJson;

  bool metadata_only() const {
    return shape == Shape::kPartialMetadata || shape == Shape::kPartialMetadataList;
  }
};
// kNotAcceptable where nothing the client takes is served.
// Some answers cannot be shown as tables.
Result<Wanted> negotiate(std::string_view accept, bool tables = true);

// True where the header names no media type that any answer has: the router refuses before it
// looks at the request.
bool unroutable(std::string_view accept);

// The version of apidiscovery.k8s.io the client prefers; empty: the old discovery documents.
std::string wanted_discovery(std::string_view accept);

// Indented where asked for, or where somebody reads it with curl or a browser.
bool pretty(const http::Request& request, const http::Url& url);

// Indented where that is wanted, YAML where that is preferred. Answers that are no JSON stay as
// they are.
void encode_answer(const http::Request& request, const http::Url& url, http::Response& response);

}  // namespace skiff::apiserver
