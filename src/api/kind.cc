#include "api/kind.h"

namespace skiff::api {

std::string Resource::collection_path(std::string_view ns) const {
  std::string out = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (!ns.empty() && namespaced) {
    out += "/namespaces/";
    out += ns;
  }
  return out + "/" + plural;
}

std::string Resource::path(std::string_view ns, std::string_view name,
                           std::string_view subresource) const {
  std::string out = collection_path(ns) + "/";
  out += name;
  if (!subresource.empty()) {
    out += '/';
    out += subresource;
  }
  return out;
}

}  // namespace skiff::api
