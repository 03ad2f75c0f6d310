// Connections that Skiff makes for a pod: in the pod's own network, where 127.0.0.1 is the pod and
// never Skiff, and where a host that its owner has named is no nearer than to the pod itself.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "node/runtime.h"

namespace skiff::node {

class PodDialer {
 public:
  PodDialer(Runtime& runtime, std::string pod_uid, std::string_view pod_ip);

  // Names are those of the machine, as for kubelet.
  static Result<sockaddr_storage> resolve(const std::string& host, int port);
  // A socket to connect to this address with. Where pods have no network of their own but an
  // address of the machine's loopback, what means "here" is changed to that.
  Result<int> socket_for(sockaddr_storage& to) const;

 private:
  Runtime& runtime_;
  const std::string pod_uid_;
  const std::uint32_t pod_ip_;  // 0: none that we read
};

}  // namespace skiff::node
