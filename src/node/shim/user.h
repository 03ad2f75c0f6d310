// Users and groups as a container's own files name them, and becoming one of them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/runtime.h"

namespace skiff::node {

// What /etc/passwd and /etc/group say of a user; a user they do not know is in group 0 alone.
struct Account {
  int gid = 0;
  std::vector<int> groups = {};  // beside the first one
};
Account find_account(int uid, std::string_view passwd, std::string_view group);

// All groups of a program: the first one, those of the specification, and the user's own where
// they are asked for. Each once.
std::vector<int> all_groups(const ContainerSpec& spec, const Account& account);

// Who the users of this process's namespace are outside of it, from the form of /proc/self/uid_map.
struct UserMap {
  bool whole = true;    // the machine's own users: no user namespace
  bool single = false;  // one user, our own, seen as root: nobody can become somebody else
  int outside = 0;      // who root is outside
};
UserMap parse_user_map(std::string_view text);
UserMap own_user_map();

// Inside of the container's files. Where there is one user only, everything stays his. Also hands
// the three standard streams over, which the program may open by name.
Result<void> become_user(const ContainerSpec& spec);

}  // namespace skiff::node
