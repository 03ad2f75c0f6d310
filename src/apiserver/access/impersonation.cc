#include "apiserver/access/impersonation.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "apiserver/access/authorizer.h"
#include "base/names.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kUser = "Impersonate-User";
constexpr std::string_view kGroup = "Impersonate-Group";
constexpr std::string_view kUid = "Impersonate-Uid";
constexpr std::string_view kExtra = "Impersonate-Extra-";
constexpr std::string_view kAuthentication = "authentication.k8s.io";

bool begins(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A key that is badly escaped stands for itself.
std::string extra_key(std::string_view header) {
  const std::string encoded = lower(header.substr(kExtra.size()));
  std::string out;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] != '%') {
      out += encoded[i];
      continue;
    }
    if (i + 2 >= encoded.size()) return encoded;
    const int high = hex_digit(encoded[i + 1]), low = hex_digit(encoded[i + 2]);
    if (high < 0 || low < 0) return encoded;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// One part of an identity that somebody wants to take.
struct Part {
  std::string resource = {};
  std::string group = {};
  std::string ns = {};
  std::string name = {};
  std::string key = {};  // of userextras
};

std::vector<Part> parts_of(const http::Headers& headers) {
  std::vector<Part> users, groups, extras, uids;
  for (const auto& [name, value] : headers) {
    if (equal_ignoring_case(name, kUser) && users.empty() && !value.empty()) {
      Part part{.resource = "serviceaccounts"};
      if (!split_service_account(value, part.ns, part.name)) {
        part = {.resource = "users", .name = value};
      }
      users.push_back(std::move(part));
    } else if (equal_ignoring_case(name, kGroup)) {
      groups.push_back({.resource = "groups", .name = value});
    } else if (equal_ignoring_case(name, kUid) && uids.empty() && !value.empty()) {
      uids.push_back({.resource = "uids", .group = std::string(kAuthentication), .name = value});
    } else if (begins(name, kExtra)) {
      extras.push_back({.resource = "userextras",
                        .group = std::string(kAuthentication),
                        .name = value,
                        .key = extra_key(name)});
    }
  }
  for (auto* more : {&groups, &extras, &uids}) {
    users.insert(users.end(), more->begin(), more->end());
  }
  return users;
}

// The real server prints its references with all fields, most of them empty.
Error without_user(const std::vector<Part>& parts) {
  std::string list;
  for (const Part& part : parts) {
    const std::string_view kind = part.resource == "groups"       ? "Group"
                                  : part.resource == "userextras" ? "UserExtra"
                                                                  : "UID";
    const std::string version =
        part.group.empty() ? std::string() : std::string(kAuthentication) + "/v1";
    if (!list.empty()) list += ' ';
    list += fmt::format("{{{} {} {} {} {} {} {}}}", kind, "", part.name, "", version, "", part.key);
  }
  return {.code = Code::kInternal,
          .message = fmt::format("requested [{}] without impersonating a user", list)};
}

void add_implied_group(Identity& identity) {
  const bool anonymous = identity.anonymous();
  const bool known = identity.member_of("system:unauthenticated") ||
                     (!anonymous && identity.member_of("system:authenticated"));
  if (!known) {
    identity.groups.emplace_back(anonymous ? "system:unauthenticated" : "system:authenticated");
  }
}

}  // namespace

bool split_service_account(std::string_view user, std::string& ns, std::string& name) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return false;
  const auto parts = split(user.substr(kPrefix.size()), ':');
  if (parts.size() != 2 || !names::check_dns1123_label(parts[0]).empty() ||
      !names::check_dns1123_subdomain(parts[1]).empty()) {
    return false;
  }
  ns = parts[0];
  name = parts[1];
  return true;
}

bool impersonates(const http::Headers& headers) {
  return std::ranges::any_of(headers, [](const auto& header) {
    return begins(header.first, "Impersonate-") &&
           (begins(header.first, kExtra) || equal_ignoring_case(header.first, kUser) ||
            equal_ignoring_case(header.first, kGroup) || equal_ignoring_case(header.first, kUid));
  });
}

Result<Identity> impersonate(const Policy& policy, const Identity& requester,
                             const http::Headers& headers) {
  const std::vector<Part> parts = parts_of(headers);
  if (parts.empty()) return requester;
  if (parts.front().resource != "users" && parts.front().resource != "serviceaccounts") {
    return std::unexpected(without_user(parts));
  }
  Identity out;
  const bool groups_given =
      std::ranges::any_of(parts, [](const Part& part) { return part.resource == "groups"; });
  for (const Part& part : parts) {
    const Action action{.verb = "impersonate",
                        .group = part.group,
                        .resource = part.resource,
                        .subresource = part.key,
                        .ns = part.ns,
                        .name = part.name};
    const Decision decision = policy.decide(requester, action);
    if (!decision.allowed) {
      return std::unexpected(forbidden_action(requester, action, decision.reason));
    }
    if (part.resource == "users") out.user = part.name;
    if (part.resource == "groups") out.groups.push_back(part.name);
    if (part.resource == "uids") out.uid = part.name;
    if (part.resource == "userextras") out.extra[part.key].push_back(part.name);
    if (part.resource == "serviceaccounts") {
      out.user = service_account_user(part.ns, part.name);
      if (!groups_given)
        out.groups = {"system:serviceaccounts", "system:serviceaccounts:" + part.ns};
    }
  }
  add_implied_group(out);
  return out;
}

}  // namespace skiff::apiserver
