// What Skiff tells the shims of pods that share the machine's network: where names are answered,
// and what services lead to. One file for all pods, replaced whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/net/service_rules.h"

namespace skiff::node {

struct LedTable {
  std::uint16_t names_port = 0;  // of 127.0.0.1; 0: nobody answers
  std::vector<ServicePort> services = {};

  bool operator==(const LedTable&) const = default;
};

// A line each: "names PORT" and "tcp IP PORT TARGET:PORT ...".
std::string to_text(const LedTable& table);
// What cannot be read is left out: a shim meets the files of newer Skiffs.
LedTable read_table(std::string_view text);

}  // namespace skiff::node
