// DNS messages: reading queries and writing answers from the cluster's records. Pure and total:
// any bytes are a query, a refusal or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "node/names/dns_records.h"

namespace skiff::node {

enum class DnsType : std::uint16_t {
  kA = 1,
  kCname = 5,
  kSoa = 6,
  kPtr = 12,
  kAaaa = 28,
  kSrv = 33,
  kOpt = 41,
  kAny = 255
};
enum class DnsCode : std::uint8_t {
  kOk = 0,
  kFormat = 1,
  kServerFailure = 2,
  kNoName = 3,
  kNotImplemented = 4
};

struct DnsQuery {
  std::uint16_t id = 0;
  std::uint16_t flags = 0;
  std::string name = {};  // in lower case, without the last dot
  std::uint16_t type = 0;
  std::string question = {};          // as received, to be repeated in the answer
  std::optional<std::uint16_t> edns;  // the sender's buffer, where it sent an OPT record
  DnsCode problem = DnsCode::kOk;     // what is wrong with it: answer with this
};

// Nothing: too short to be answered, or an answer itself.
std::optional<DnsQuery> parse_dns_query(std::string_view packet);

// Nothing: not ours, ask another server. `room` is how many bytes the answer may have; one that
// does not fit is cut to an empty one that says so (TC).
std::optional<std::string> answer_dns(const DnsQuery& query, const DnsRecords& records,
                                      std::size_t room);
// An answer without records.
std::string refuse_dns(const DnsQuery& query, DnsCode code);

// What a UDP answer to this query may have.
std::size_t udp_room(const DnsQuery& query);

}  // namespace skiff::node
