#include "image/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace skiff::image {
namespace {

constexpr std::size_t kNameMax = 255;
constexpr std::size_t kTagMax = 128;

bool digit_or_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool word(char c) { return digit_or_lower(c) || (c >= 'A' && c <= 'Z') || c == '_'; }

// Letters and digits, parted by one dot, one or two underscores, or any number of dashes.
bool path_part(std::string_view part) {
  if (part.empty() || !digit_or_lower(part.front()) || !digit_or_lower(part.back())) return false;
  for (std::size_t i = 0; i < part.size();) {
    if (digit_or_lower(part[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < part.size() && !digit_or_lower(part[end])) ++end;
    const std::string_view between = part.substr(i, end - i);
    const bool dashes = between.find_first_not_of('-') == std::string_view::npos;
    if (between != "." && between != "_" && between != "__" && !dashes) return false;
    i = end;
  }
  return true;
}

bool valid_tag(std::string_view tag) {
  return !tag.empty() && tag.size() <= kTagMax && word(tag.front()) &&
         std::all_of(tag.begin(), tag.end(),
                     [](char c) { return word(c) || c == '.' || c == '-'; });
}

bool hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The first part of a name is a registry if it could not be a folder of Docker Hub.
bool looks_like_registry(std::string_view part) {
  return part.find_first_of(".:") != std::string_view::npos || part == "localhost" ||
         lower(part) != part;
}

bool valid_registry(std::string_view registry) {
  return !registry.empty() &&
         registry.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789.-:[]") == std::string_view::npos &&
         registry.front() != '-' && registry.front() != '.' && registry_address(registry);
}

std::unexpected<Error> invalid(std::string_view text, std::string_view why) {
  return fail(Code::kInvalid, fmt::format("couldn't parse image name \"{}\": {}", text, why));
}

}  // namespace

std::string Reference::text() const {
  return digest.empty() ? name() + ":" + tag : name() + "@" + digest;
}

bool is_digest(std::string_view text) {
  return text.starts_with("sha256:") && text.size() == 7 + 64 && hex(text.substr(7));
}

std::string_view digest_hex(std::string_view digest) { return digest.substr(7); }

Result<Reference> parse_reference(std::string_view text) {
  constexpr std::string_view kFormat = "invalid reference format";
  Reference out;
  std::string_view rest = text;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    out.digest = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!is_digest(out.digest)) {
      return invalid(text, "the digest must be sha256: and 64 hexadecimal digits");
    }
  }
  if (rest.size() == 64 && hex(rest)) {
    return invalid(text, "cannot specify 64-byte hexadecimal strings");
  }
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos && looks_like_registry(rest.substr(0, slash))) {
    out.registry = rest.substr(0, slash);
    rest = rest.substr(slash + 1);
    if (!valid_registry(out.registry)) return invalid(text, kFormat);
  }
  if (const std::size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    out.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!valid_tag(out.tag)) return invalid(text, kFormat);
  }
  if (out.registry.empty() || out.registry == "index.docker.io") out.registry = "docker.io";
  out.repository = rest;
  if (out.registry == "docker.io" && rest.find('/') == std::string_view::npos) {
    out.repository = "library/" + out.repository;
  }
  for (const std::string_view part : split(rest, '/')) {
    if (path_part(part)) continue;
    const bool capitals = path_part(lower(part));
    return invalid(text, capitals ? "repository name must be lowercase" : kFormat);
  }
  if (out.name().size() > kNameMax) {
    return invalid(text, "repository name must not be more than 255 characters");
  }
  if (out.tag.empty() && out.digest.empty()) out.tag = "latest";
  return out;
}

Result<RegistryAddress> registry_address(std::string_view registry) {
  RegistryAddress out;
  std::string_view host = registry;
  std::optional<int> port;
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const std::string_view digits = host.substr(colon + 1);
    int number = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec != std::errc{} || read.ptr != digits.data() + digits.size() || number <= 0 ||
        number > 65535) {
      return fail(Code::kInvalid, fmt::format("registry \"{}\": the port is no port", registry));
    }
    port = number;
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return fail(Code::kInvalid, "the registry has no name");
  out.host = host == "docker.io" ? "registry-1.docker.io" : std::string(host);
  out.tls = !(host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") ||
              host == "::1");
  out.port = port.value_or(out.tls ? 443 : 80);
  return out;
}

}  // namespace skiff::image
