// What somebody far away talks to in a pod, held by a thread of its own: a program with its three
// streams or a terminal, or a port.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "apiserver/pod_streams.h"
#include "node/runtime.h"

namespace skiff::node {

Result<std::unique_ptr<apiserver::Peer>> open_program(Runtime& runtime, std::string_view pod_uid,
                                                      const apiserver::ExecOptions& options);
// The container's own program, as it runs already.
std::unique_ptr<apiserver::Peer> open_container(Runtime& runtime, std::string_view pod_uid,
                                                const apiserver::ExecOptions& options);
// True where this process itself listens at that port of the network that `socket` is in.
bool skiffs_own(int socket, int port);
using OwnPort = std::function<bool(int socket, int port)>;
// Where nobody listens, the peer ends with that error. A pod may share the machine's network, and
// whoever connects from here is Skiff's own user: nobody may ask Skiff itself in that name.
std::unique_ptr<apiserver::Peer> open_port(Runtime& runtime, std::string_view pod_uid, int port,
                                           OwnPort own = skiffs_own);

}  // namespace skiff::node
