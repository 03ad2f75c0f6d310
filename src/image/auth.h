// Who we are to a registry: Docker's configuration files and a registry's challenges. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "image/reference.h"

namespace skiff::image {

struct Credentials {
  std::string username = {};
  std::string password = {};
  std::string identity_token = {};  // an OAuth refresh token, instead of the two

  bool operator==(const Credentials&) const = default;
};

// Names of registries, perhaps with a path, and what to say there.
class Keyring {
 public:
  // `auths` of config.json, or the older form that is nothing but its inside.
  void add(const json::value& docker_config);
  // All that fit, the most special name first. *.example.com is one label of a host.
  std::vector<Credentials> lookup(const Reference& reference) const;

 private:
  struct Entry {
    std::string host = {};
    std::string path = {};
    Credentials credentials = {};
  };
  std::vector<Entry> entries_ = {};
};

// WWW-Authenticate: what the registry wants to see.
struct Challenge {
  bool bearer = false;  // else basic
  std::string realm = {};
  std::string service = {};
  std::string scope = {};
};
std::optional<Challenge> parse_challenge(std::string_view header);

std::string basic_header(const Credentials& credentials);

}  // namespace skiff::image
