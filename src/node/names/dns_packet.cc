#include "node/names/dns_packet.h"

#include <algorithm>

#include "base/strings.h"

namespace skiff::node {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kNameBytes = 255;
constexpr std::uint16_t kAnswer = 0x8000;
constexpr std::uint16_t kAuthoritative = 0x0400;
constexpr std::uint16_t kTruncated = 0x0200;
constexpr std::uint16_t kRecursionDesired = 0x0100;
constexpr std::uint16_t kRecursionAvailable = 0x0080;
constexpr std::uint16_t kClassIn = 1;
constexpr std::uint16_t kClassAny = 255;
// Names come and go with pods: nobody should keep an answer for long.
constexpr std::uint32_t kTtlSeconds = 5;
// What fits an Ethernet frame, so that an answer is never fragmented.
constexpr std::uint16_t kUdpMost = 1232;
constexpr std::uint16_t kUdpLeast = 512;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  bool skip(std::size_t n) {
    if (bytes_.size() - at_ < n) return false;
    at_ += n;
    return true;
  }
  bool u16(std::uint16_t& out) {
    if (bytes_.size() - at_ < 2) return false;
    out = static_cast<std::uint16_t>(byte(at_) << 8 | byte(at_ + 1));
    at_ += 2;
    return true;
  }
  // A name without pointers, which is what a question has. "" is the root.
  bool name(std::string& out) {
    out.clear();
    while (at_ < bytes_.size()) {
      const std::size_t length = byte(at_++);
      if (length == 0) return true;
      if (length > 63 || bytes_.size() - at_ < length) return false;
      if (out.size() + length + 1 > kNameBytes) return false;
      if (!out.empty()) out += '.';
      out += bytes_.substr(at_, length);
      at_ += length;
    }
    return false;
  }

 private:
  unsigned byte(std::size_t i) const { return static_cast<unsigned char>(bytes_[i]); }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

void put16(std::string& out, std::uint16_t v) {
  out += static_cast<char>(v >> 8);
  out += static_cast<char>(v & 255);
}

void put32(std::string& out, std::uint32_t v) {
  put16(out, static_cast<std::uint16_t>(v >> 16));
  put16(out, static_cast<std::uint16_t>(v & 0xffff));
}

void put_name(std::string& out, std::string_view name) {
  if (!name.empty()) {
    for (const std::string_view label : split(name, '.')) {
      out += static_cast<char>(std::min<std::size_t>(label.size(), 63));
      out += label.substr(0, 63);
    }
  }
  out += '\0';
}

class Writer {
 public:
  explicit Writer(const DnsQuery& query) : query_(query) {}

  // `owner` empty: the name asked for.
  void answer(std::string_view owner, DnsType type, const std::string& data) {
    record(answers_, owner, type, data);
    ++answer_count_;
  }
  void additional(std::string_view owner, DnsType type, const std::string& data) {
    record(additionals_, owner, type, data);
    ++additional_count_;
  }
  bool empty() const { return answer_count_ == 0; }

  std::string finish(DnsCode code, bool ours, std::size_t room) const {
    std::string authority;
    if (ours && answer_count_ == 0) record(authority, kClusterDomain, DnsType::kSoa, soa());
    std::string out = whole(code, ours, authority, false);
    if (out.size() > room) out = whole(code, ours, {}, true);
    return out;
  }

 private:
  static std::string soa() {
    std::string data;
    put_name(data, "ns.dns.cluster.local");
    put_name(data, "hostmaster.cluster.local");
    for (const std::uint32_t v : {1U, 7200U, 1800U, 86400U, kTtlSeconds}) put32(data, v);
    return data;
  }

  static void record(std::string& out, std::string_view owner, DnsType type,
                     const std::string& data) {
    if (owner.empty()) {
      put16(out, 0xc000 | kHeaderBytes);  // the question, which follows the header
    } else {
      put_name(out, owner);
    }
    put16(out, static_cast<std::uint16_t>(type));
    put16(out, kClassIn);
    put32(out, kTtlSeconds);
    put16(out, static_cast<std::uint16_t>(data.size()));
    out += data;
  }

  std::string whole(DnsCode code, bool ours, const std::string& authority, bool cut) const {
    std::string out;
    put16(out, query_.id);
    const auto kept = static_cast<std::uint16_t>(query_.flags & (0x7800 | kRecursionDesired));
    std::uint16_t flags = kAnswer | kRecursionAvailable | kept;
    if (ours) flags |= kAuthoritative;
    if (cut) flags |= kTruncated;
    put16(out, static_cast<std::uint16_t>(flags | static_cast<std::uint16_t>(code)));
    put16(out, query_.question.empty() ? 0 : 1);
    put16(out, cut ? 0 : answer_count_);
    put16(out, authority.empty() ? 0 : 1);
    put16(out, static_cast<std::uint16_t>((cut ? 0 : additional_count_) + (query_.edns ? 1 : 0)));
    out += query_.question;
    if (!cut) out += answers_;
    out += authority;
    if (!cut) out += additionals_;
    if (query_.edns) {
      put_name(out, "");
      put16(out, static_cast<std::uint16_t>(DnsType::kOpt));
      put16(out, kUdpMost);
      put32(out, 0);
      put16(out, 0);
    }
    return out;
  }

  const DnsQuery& query_;
  std::string answers_ = {};
  std::string additionals_ = {};
  std::uint16_t answer_count_ = 0;
  std::uint16_t additional_count_ = 0;
};

std::string address_data(Ipv4 address) {
  std::string out;
  put32(out, address);
  return out;
}

std::string name_data(std::string_view name) {
  std::string out;
  put_name(out, name);
  return out;
}

bool wants(const DnsQuery& query, DnsType type) {
  return query.type == static_cast<std::uint16_t>(type) ||
         query.type == static_cast<std::uint16_t>(DnsType::kAny);
}

// 4.3.2.1.in-addr.arpa -> 1.2.3.4
std::optional<Ipv4> reverse_address(std::string_view name) {
  constexpr std::string_view kEnd = ".in-addr.arpa";
  if (!name.ends_with(kEnd)) return std::nullopt;
  const auto backwards = parse_ipv4(name.substr(0, name.size() - kEnd.size()));
  if (!backwards) return std::nullopt;
  const Ipv4 b = *backwards;
  return b << 24 | (b & 0xff00) << 8 | (b >> 8 & 0xff00) | b >> 24;
}

// 10-0-0-9.NS.pod.cluster.local: no record is needed, the name says it all.
struct PodName {
  bool exists = false;
  std::optional<Ipv4> address = {};
};
PodName pod_name(std::string_view name, const DnsRecords& records) {
  constexpr std::string_view kPods = "pod.cluster.local";
  if (name == kPods) return {.exists = true};
  if (!name.ends_with(kPods) || name[name.size() - kPods.size() - 1] != '.') return {};
  const auto parts = split(name.substr(0, name.size() - kPods.size() - 1), '.');
  if (parts.size() > 2 || !records.pod_namespaces.contains(parts.back())) return {};
  if (parts.size() == 1) return {.exists = true};
  std::string dotted(parts[0]);
  std::replace(dotted.begin(), dotted.end(), '-', '.');
  const auto address = parse_ipv4(dotted);
  return {.exists = address.has_value(), .address = address};
}

constexpr std::uint16_t kRecordsMost = 1000;  // far more than 64 KiB can hold matter to anybody

void add_record(const DnsQuery& query, const DnsRecords& records, const DnsRecords::Name& found,
                Writer& out) {
  if (!found.alias.empty()) return out.answer("", DnsType::kCname, name_data(found.alias));
  std::uint16_t count = 0;
  if (wants(query, DnsType::kA)) {
    for (const Ipv4 address : found.addresses) {
      if (count++ < kRecordsMost) out.answer("", DnsType::kA, address_data(address));
    }
  }
  if (!wants(query, DnsType::kSrv)) return;
  for (const SrvTarget& service : found.services) {
    if (count++ >= kRecordsMost) return;
    std::string data;
    put16(data, 0);
    put16(data, 100);
    put16(data, service.port);
    put_name(data, service.target);
    out.answer("", DnsType::kSrv, data);
    const auto target = records.names.find(service.target);
    if (target == records.names.end() || target->second.addresses.empty()) continue;
    out.additional(service.target, DnsType::kA, address_data(target->second.addresses.front()));
  }
}

}  // namespace

std::optional<DnsQuery> parse_dns_query(std::string_view packet) {
  Reader in(packet);
  DnsQuery query;
  std::uint16_t questions = 0, answers = 0, authorities = 0, additionals = 0;
  if (!in.u16(query.id) || !in.u16(query.flags) || !in.u16(questions) || !in.u16(answers) ||
      !in.u16(authorities) || !in.u16(additionals)) {
    return std::nullopt;
  }
  if (query.flags & kAnswer) return std::nullopt;
  if ((query.flags & 0x7800) != 0) {
    query.problem = DnsCode::kNotImplemented;
    return query;
  }
  std::uint16_t klass = 0;
  std::string name;
  if (questions != 1 || !in.name(name) || !in.u16(query.type) || !in.u16(klass)) {
    query.problem = DnsCode::kFormat;
    return query;
  }
  query.question = std::string(packet.substr(kHeaderBytes, in.at() - kHeaderBytes));
  query.name = lower(name);
  if (klass != kClassIn && klass != kClassAny) query.problem = DnsCode::kNotImplemented;
  // A query has nothing between its question and its OPT record; others are not looked at.
  std::uint16_t type = 0, size = 0;
  if (answers == 0 && authorities == 0 && additionals > 0 && in.name(name) && name.empty() &&
      in.u16(type) && in.u16(size) && type == static_cast<std::uint16_t>(DnsType::kOpt)) {
    query.edns = size;
  }
  return query;
}

std::size_t udp_room(const DnsQuery& query) {
  return std::clamp(query.edns.value_or(kUdpLeast), kUdpLeast, kUdpMost);
}

std::string refuse_dns(const DnsQuery& query, DnsCode code) {
  return Writer(query).finish(code, false, kUdpLeast);
}

std::optional<std::string> answer_dns(const DnsQuery& query, const DnsRecords& records,
                                      std::size_t room) {
  if (query.problem != DnsCode::kOk) return refuse_dns(query, query.problem);
  Writer out(query);
  if (const auto address = reverse_address(query.name)) {
    const auto found = records.reverse.find(*address);
    if (found == records.reverse.end()) return std::nullopt;
    if (wants(query, DnsType::kPtr)) out.answer("", DnsType::kPtr, name_data(found->second));
    return out.finish(DnsCode::kOk, true, room);
  }
  // Programs that know nothing of search lists ask for NAME.NS.svc.
  std::string name = query.name;
  if (name.ends_with(".svc")) name += "." + std::string(kClusterDomain);
  const bool top = name == kClusterDomain || name == "svc.cluster.local";
  if (!top && !name.ends_with("." + std::string(kClusterDomain))) return std::nullopt;
  const PodName pod = pod_name(name, records);
  if (pod.exists) {
    if (pod.address && wants(query, DnsType::kA)) {
      out.answer("", DnsType::kA, address_data(*pod.address));
    }
    return out.finish(DnsCode::kOk, true, room);
  }
  const auto found = records.names.find(name);
  if (found != records.names.end()) {
    add_record(query, records, found->second, out);
  } else if (!top) {
    return out.finish(DnsCode::kNoName, true, room);
  }
  return out.finish(DnsCode::kOk, true, room);
}

}  // namespace skiff::node
