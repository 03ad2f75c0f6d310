#include "image/auth.h"

#include <algorithm>

#include "base/base64.h"
#include "base/strings.h"

namespace skiff::image {
namespace {

// https://index.docker.io/v1/ is what `docker login` writes for Docker Hub.
std::pair<std::string, std::string> host_and_path(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  const std::size_t slash = key.find('/');
  std::string host(key.substr(0, slash));
  std::string path(slash == std::string_view::npos ? "" : key.substr(slash + 1));
  while (path.ends_with('/')) path.pop_back();
  if (path == "v1" || path == "v2") path.clear();
  for (const char* alias : {"index.docker.io", "registry-1.docker.io"}) {
    if (host == alias) host = "docker.io";
  }
  return {std::move(host), std::move(path)};
}

bool label_matches(std::string_view pattern, std::string_view label) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == label;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (label.size() < before.size() + after.size() || !label.starts_with(before)) return false;
  if (after.find('*') == std::string_view::npos) return label.ends_with(after);
  for (std::size_t at = before.size(); at <= label.size(); ++at) {
    if (label_matches(after, label.substr(at))) return true;
  }
  return false;
}

bool host_matches(std::string_view pattern, std::string_view host) {
  const auto wanted = split(pattern, '.'), given = split(host, '.');
  return wanted.size() == given.size() &&
         std::equal(wanted.begin(), wanted.end(), given.begin(), label_matches);
}

bool path_matches(std::string_view prefix, std::string_view repository) {
  return prefix.empty() || repository == prefix ||
         (repository.starts_with(prefix) && repository[prefix.size()] == '/');
}

Credentials read_credentials(const json::value& entry) {
  Credentials out{.username = std::string(json::get_string(entry, {"username"})),
                  .password = std::string(json::get_string(entry, {"password"})),
                  .identity_token = std::string(json::get_string(entry, {"identitytoken"}))};
  const auto both = base64::decode(json::get_string(entry, {"auth"}));
  if (!both || both->empty()) return out;
  const std::size_t colon = both->find(':');
  if (colon == std::string::npos) return out;
  out.username = both->substr(0, colon);
  out.password = both->substr(colon + 1);
  while (out.password.ends_with('\0')) out.password.pop_back();
  return out;
}

}  // namespace

void Keyring::add(const json::value& docker_config) {
  const json::value* auths = json::find(docker_config, {"auths"});
  const json::value& entries = auths == nullptr ? docker_config : *auths;
  for (const auto& [key, entry] : json::get_object(entries, {})) {
    Credentials credentials = read_credentials(entry);
    if (credentials == Credentials{}) continue;  // a credential helper has them, not this file
    auto [host, path] = host_and_path({key.data(), key.size()});
    entries_.push_back({std::move(host), std::move(path), std::move(credentials)});
  }
}

std::vector<Credentials> Keyring::lookup(const Reference& reference) const {
  std::vector<const Entry*> fitting;
  for (const Entry& entry : entries_) {
    if (host_matches(entry.host, reference.registry) &&
        path_matches(entry.path, reference.repository)) {
      fitting.push_back(&entry);
    }
  }
  // By length of the name; between equals the one that was added first.
  std::ranges::sort(fitting, [](const Entry* a, const Entry* b) {
    const std::size_t longer = a->path.size() + a->host.size();
    const std::size_t shorter = b->path.size() + b->host.size();
    return longer != shorter ? longer > shorter : a < b;
  });
  std::vector<Credentials> out;
  for (const Entry* entry : fitting) out.push_back(entry->credentials);
  return out;
}

std::optional<Challenge> parse_challenge(std::string_view header) {
  Challenge out;
  const std::size_t space = header.find(' ');
  const std::string scheme = lower(header.substr(0, space));
  out.bearer = scheme == "bearer";
  if (!out.bearer && scheme != "basic") return std::nullopt;
  std::string_view rest = space == std::string_view::npos ? "" : header.substr(space + 1);
  while (!rest.empty()) {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == ',')) rest.remove_prefix(1);
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos) break;
    const std::string key = lower(trim(rest.substr(0, equals)));
    rest.remove_prefix(equals + 1);
    std::string value;
    if (rest.starts_with('"')) {
      std::size_t at = 1;
      for (; at < rest.size() && rest[at] != '"'; ++at) {
        if (rest[at] == '\\' && at + 1 < rest.size()) ++at;
        value += rest[at];
      }
      rest.remove_prefix(std::min(at + 1, rest.size()));
    } else {
      const std::size_t end = std::min(rest.find(','), rest.size());
      value = trim(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    if (key == "realm") out.realm = value;
    if (key == "service") out.service = value;
    if (key == "scope") out.scope = value;
  }
  if (out.bearer && out.realm.empty()) return std::nullopt;
  return out;
}

std::string basic_header(const Credentials& credentials) {
  return "Basic " + base64::encode(credentials.username + ":" + credentials.password);
}

}  // namespace skiff::image
