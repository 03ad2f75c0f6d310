// What Kubernetes lets a thing be called. Each check gives the sentence Kubernetes would say about
// a bad name, or nothing about a good one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace skiff::names {

using Complaint = std::optional<std::string>;

Complaint check_dns1123_label(std::string_view name);      // namespaces, containers, volumes
Complaint check_dns1123_subdomain(std::string_view name);  // most objects
Complaint check_dns1035_label(std::string_view name);      // services
Complaint check_label_key(std::string_view key);           // also annotation keys, finalizers
Complaint check_label_value(std::string_view value);
Complaint check_port_name(std::string_view name);
Complaint check_env_name(std::string_view name);
Complaint check_config_key(std::string_view key);  // ConfigMap and Secret data

}  // namespace skiff::names
