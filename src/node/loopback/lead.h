// Which address a call of a pod's program is to use instead, where pods share the machine's network
// and each has an address of the loopback. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "node/loopback/table.h"

namespace skiff::node {

enum class LedCall { kBind, kConnect };

struct SocketFacts {
  bool udp = false;
  bool only_v6 = false;  // takes no IPv4 connections
};

struct LedPod {
  std::uint32_t ip = 0;
  // Whether a program of the pod is to be found at this port of its address.
  std::function<bool(std::uint16_t port)> listens = {};
  std::function<LedTable()> table = {};  // asked only where it is needed
  std::uint32_t choice = 0;              // any number: which of a service's pods
};

// Changes the sockaddr in place; false: the call goes on as it is.
bool lead(LedCall call, std::span<std::byte> address, const SocketFacts& facts, const LedPod& pod);

// Ports that only root may take are at others of the pod's address. For all who connect to a pod.
std::uint16_t led_port(std::uint32_t ip, std::uint16_t port);

// Whether `ip` and `port` are in a table of the form of /proc/net/tcp, udp, tcp6 or udp6 as
// somebody who takes connections or packets.
bool is_taken(std::string_view sockets, std::uint32_t ip, std::uint16_t port);

}  // namespace skiff::node
