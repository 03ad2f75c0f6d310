// An ordinary user as root of namespaces of his own: users, mounts, network. Held by a process that
// outlives Skiff, so that pods keep their network while it is away and the next Skiff finds them.
#pragma once

#include <string>

#include "base/result.h"

namespace skiff::node {

struct RootlessOptions {
  std::string folder = {};        // absolute; the record of who holds the namespaces is in it
  std::string skiff_binary = {};  // run as: BINARY hold FOLDER
};

struct RootlessStory {
  std::string program = {};  // what carries packets to the outside: pasta or slirp4netns
  std::string problem = {};  // why nothing does, in namespaces that were held already
  bool many_users = false;   // /etc/subuid grants others beside the user himself
};

// Enters the namespaces, which are made where they are missing. Only for a process with one thread.
// An error says why this machine does not allow it, and nothing has changed.
Result<RootlessStory> enter_rootless(const RootlessOptions& options);
// Enters namespaces that are held, whether they have a way to the outside or not.
Result<void> enter_held(const std::string& folder);
// Enters namespaces that end with this process, for files whose owners are somebody only there.
Result<void> enter_for_files(const std::string& folder);
// Whether a holder is alive.
bool rootless_lives(const std::string& folder);
// Ends the holder and the network program; for when no pod is left.
void end_rootless(const std::string& folder);
// Ends the network program of a holder that was killed; nothing where the holder is alive.
void end_rootless_rest(const std::string& folder);

// `skiff hold FOLDER`: the holder itself.
int hold_main(int argc, char** argv);

}  // namespace skiff::node
