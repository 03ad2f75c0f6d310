// The DNS server of the cluster: UDP and TCP on one address, one thread. Names of the cluster are
// answered from a snapshot; the rest is asked of the machine's own servers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/names/dns_records.h"

namespace skiff::node {

struct DnsUpstream {
  Ipv4 address = 0;
  std::uint16_t port = 53;
};

struct DnsServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 53;  // 0: any
  std::vector<DnsUpstream> upstreams = {};
  std::chrono::milliseconds upstream_timeout{1500};  // for each of them
  // Asked for every query, on the server's thread. Never null.
  std::function<std::shared_ptr<const DnsRecords>()> records = {};
};

class DnsServer {
 public:
  static Result<std::unique_ptr<DnsServer>> start(DnsServerOptions options);
  ~DnsServer();

  std::uint16_t port() const;

 private:
  class Impl;
  explicit DnsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The nameserver lines of a resolv.conf; those of `own` (our address) are left out.
std::vector<DnsUpstream> parse_upstreams(std::string_view resolv_conf, std::string_view own);

}  // namespace skiff::node
