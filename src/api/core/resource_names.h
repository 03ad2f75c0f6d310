// What amounts may be called where: in containers, quotas and limits.
#pragma once

#include <string>
#include <string_view>

#include "api/rules.h"

namespace skiff::api {

// cpu, memory, ephemeral-storage, storage and huge pages: what Kubernetes itself counts.
bool native_resource(std::string_view name);
bool huge_pages(std::string_view name);
bool standard_quota_resource(std::string_view name);
// More may be promised than there is: not so for GPUs and huge pages.
bool overcommit_allowed(std::string_view name);

void check_resource_name(std::string_view name, const std::string& path, Rules& rules);
void check_container_resource_name(std::string_view name, const std::string& path, Rules& rules);
void check_quota_resource_name(std::string_view name, const std::string& path, Rules& rules);
// Not negative, and whole where only whole ones exist.
void check_quota_amount(std::string_view name, const json::value& amount, const std::string& path,
                        Rules& rules);

}  // namespace skiff::api
