// Who a container runs as: the image's user names, looked up in the image's own files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skiff::image {

struct User {
  int uid = 0;
  int gid = 0;
  std::string home = "/";

  bool operator==(const User&) const = default;
};

// Texts of /etc/passwd and /etc/group.
struct Accounts {
  std::string passwd = {};
  std::string group = {};
};

// "", "name", "1000", "name:group", "1000:1000". A number needs no entry. Pure.
Result<User> find_user(const Accounts& accounts, std::string_view wanted);

// A file as a container of these layers (topmost first) would see it; empty where there is none.
std::string read_from_layers(const std::vector<std::string>& layers, const std::string& path);
Accounts read_accounts(const std::vector<std::string>& layers);

}  // namespace skiff::image
