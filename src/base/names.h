// What Kubernetes lets a thing be called. Each check gives the sentences Kubernetes would say about
// a bad name, and none about a good one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace skiff::names {

using Complaints = std::vector<std::string>;

Complaints check_dns1123_label(std::string_view name);      // namespaces, containers, volumes
Complaints check_dns1123_subdomain(std::string_view name);  // most objects
Complaints check_search_domain(std::string_view name);      // a subdomain that may have underscores
Complaints check_dns1035_label(std::string_view name);      // services
Complaints check_label_key(std::string_view key);           // also annotation keys, finalizers
Complaints check_label_value(std::string_view value);
Complaints check_port_name(std::string_view name);
Complaints check_env_name(std::string_view name);
Complaints check_config_key(std::string_view key);     // ConfigMap and Secret data
Complaints check_path_segment(std::string_view name);  // whatever can stand in a URL

}  // namespace skiff::names
