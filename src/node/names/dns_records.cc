#include "node/names/dns_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "base/selectors.h"
#include "base/strings.h"

namespace skiff::node {
namespace {

bool pod_finished(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

constexpr std::size_t kHostnameBytes = 63;
constexpr std::string_view kApiNames[] = {"kubernetes.default", "skiff.skiff-system"};

class Builder {
 public:
  explicit Builder(bool cluster_ips) : cluster_ips_(cluster_ips) {}

  void add_pod(const Object& pod) {
    const auto ip = parse_ipv4(json::get_string(*pod, {"status", "podIP"}));
    if (!ip || pod_finished(*pod)) return;
    records_.pod_namespaces[std::string(api::ns(*pod))] = true;
    const std::string ns(api::ns(*pod));
    const Entry entry{pod, *ip, api::condition_true(*pod, "Ready") && !api::deleting(*pod)};
    for (const auto& [key, value] : json::get_object(*pod, {"metadata", "labels"})) {
      if (!value.is_string()) continue;
      by_label_[fmt::format("{}/{}={}", ns, std::string_view(key), json::view(value.get_string()))]
          .push_back(entry);
    }
  }

  void add_service(const json::value& service) {
    const std::string base = fmt::format("{}.{}.svc.{}", lower(api::name(service)),
                                         lower(api::ns(service)), kClusterDomain);
    name(base);
    if (json::get_string(service, {"spec", "type"}) == "ExternalName") {
      name(base).alias = lower(json::get_string(service, {"spec", "externalName"}));
      return;
    }
    const auto ip = parse_ipv4(json::get_string(service, {"spec", "clusterIP"}));
    if (ip && cluster_ips_) {
      name(base).addresses = {*ip};
      records_.reverse[*ip] = base;
      return add_ports(service, base, {base});
    }
    add_pods(service, base);
  }

  void add_api(Ipv4 ip) {
    for (const std::string_view of : kApiNames) {
      auto& addresses = name(fmt::format("{}.svc.{}", of, kClusterDomain)).addresses;
      if (addresses.empty()) addresses = {ip};  // else its service leads there
    }
  }

  DnsRecords finish() && { return std::move(records_); }

 private:
  struct Entry {
    Object pod = {};
    Ipv4 ip = 0;
    bool ready = false;
  };

  // The record of a name; all names above it exist from now on.
  DnsRecords::Name& name(const std::string& full) {
    for (std::size_t dot = full.find('.'); dot != std::string::npos;
         dot = full.find('.', dot + 1)) {
      records_.names.try_emplace(full.substr(dot + 1));
    }
    return records_.names[full];
  }

  // The pods worth matching: those with the rarest label of the selector.
  const std::vector<Entry>& candidates(const std::string& ns, const json::object& selector) const {
    static const std::vector<Entry> kNone;
    const std::vector<Entry>* best = nullptr;
    for (const auto& [key, value] : selector) {
      if (!value.is_string()) return kNone;
      const auto found = by_label_.find(
          fmt::format("{}/{}={}", ns, std::string_view(key), json::view(value.get_string())));
      if (found == by_label_.end()) return kNone;
      if (best == nullptr || found->second.size() < best->size()) best = &found->second;
    }
    return best == nullptr ? kNone : *best;
  }

  void add_pods(const json::value& service, const std::string& base) {
    const json::object& selector = json::get_object(service, {"spec", "selector"});
    const bool all = json::get_bool(service, {"spec", "publishNotReadyAddresses"}).value_or(false);
    const LabelSelector matcher = LabelSelector::from_map(selector);
    std::vector<std::string> targets;
    for (const Entry& entry : candidates(std::string(api::ns(service)), selector)) {
      if ((!entry.ready && !all) || !matcher.matches_object(*entry.pod)) continue;
      name(base).addresses.push_back(entry.ip);
      // A pod that names this service as its subdomain has a name of its own in it.
      const bool named = json::get_string(*entry.pod, {"spec", "subdomain"}) == api::name(service);
      std::string host = lower(pod_hostname(*entry.pod));
      if (!named) {
        host = ipv4_text(entry.ip);
        std::replace(host.begin(), host.end(), '.', '-');
      }
      const std::string full = host + "." + base;
      name(full).addresses.push_back(entry.ip);
      targets.push_back(full);
      if (named || !records_.reverse.contains(entry.ip)) records_.reverse[entry.ip] = full;
    }
    add_ports(service, base, targets);
  }

  // _port._protocol.service, for every port that has a name.
  void add_ports(const json::value& service, const std::string& base,
                 const std::vector<std::string>& targets) {
    for (const json::value& port : json::get_array(service, {"spec", "ports"})) {
      const std::string_view port_name = json::get_string(port, {"name"});
      const auto number = json::get_int(port, {"port"});
      if (port_name.empty() || !number) continue;
      const std::string protocol = lower(json::get_string(port, {"protocol"}, "TCP"));
      auto& record = name(fmt::format("_{}._{}.{}", lower(port_name), protocol, base));
      for (const std::string& target : targets) {
        record.services.push_back({static_cast<std::uint16_t>(*number), target});
      }
    }
  }

  const bool cluster_ips_;
  DnsRecords records_ = {};
  std::map<std::string, std::vector<Entry>, std::less<>> by_label_ = {};
};

void add_aliases(const json::value& pod, std::string& out) {
  const json::array& aliases = json::get_array(pod, {"spec", "hostAliases"});
  if (!aliases.empty()) out += "\n# Entries added by HostAliases.\n";
  for (const json::value& alias : aliases) {
    out += fmt::format("{}\t{}\n", json::get_string(alias, {"ip"}),
                       join(json::strings(json::get_array(alias, {"hostnames"})), "\t"));
  }
}

}  // namespace

std::optional<Ipv4> parse_ipv4(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  Ipv4 out = 0;
  for (const std::string_view part : parts) {
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), byte);
    if (part.empty() || part.size() > 3 || error != std::errc{} ||
        end != part.data() + part.size() || byte > 255) {
      return std::nullopt;
    }
    out = out << 8 | byte;
  }
  return out;
}

std::string ipv4_text(Ipv4 a) {
  return fmt::format("{}.{}.{}.{}", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}

DnsRecords build_dns_records(const std::vector<Object>& pods, const std::vector<Object>& services,
                             std::string_view api, bool cluster_ips) {
  Builder builder(cluster_ips);
  for (const Object& pod : pods) builder.add_pod(pod);
  for (const Object& service : services) builder.add_service(*service);
  if (const auto ip = parse_ipv4(api)) builder.add_api(*ip);
  return std::move(builder).finish();
}

std::string pod_hostname(const json::value& pod) {
  std::string_view host = json::get_string(pod, {"spec", "hostname"});
  if (host.empty()) host = api::name(pod);
  host = host.substr(0, kHostnameBytes);
  while (!host.empty() && (host.back() == '-' || host.back() == '.')) host.remove_suffix(1);
  return std::string(host);
}

std::string resolv_conf_for(const json::value& pod, std::string_view dns_address) {
  std::string_view policy = json::get_string(pod, {"spec", "dnsPolicy"}, "ClusterFirst");
  const bool host = json::get_bool(pod, {"spec", "hostNetwork"}).value_or(false);
  if (policy == "ClusterFirst" && host) policy = "Default";
  std::vector<std::string> servers, search, options;
  if (policy.starts_with("ClusterFirst")) {
    if (dns_address.empty()) return {};
    servers.emplace_back(dns_address);
    search = {fmt::format("{}.svc.{}", api::ns(pod), kClusterDomain),
              fmt::format("svc.{}", kClusterDomain), std::string(kClusterDomain)};
    options.emplace_back("ndots:5");
  } else if (policy != "None") {
    return {};
  }
  for (const auto& s : json::strings(json::get_array(pod, {"spec", "dnsConfig", "nameservers"}))) {
    servers.push_back(s);
  }
  for (const auto& s : json::strings(json::get_array(pod, {"spec", "dnsConfig", "searches"}))) {
    search.push_back(s);
  }
  for (const json::value& option : json::get_array(pod, {"spec", "dnsConfig", "options"})) {
    const std::string_view key = json::get_string(option, {"name"});
    const std::string_view value = json::get_string(option, {"value"});
    std::erase_if(options, [&](const std::string& o) {
      return o == key || o.starts_with(std::string(key) + ":");
    });
    options.push_back(value.empty() ? std::string(key) : fmt::format("{}:{}", key, value));
  }
  std::string out;
  for (const std::string& server : servers) out += "nameserver " + server + "\n";
  if (!search.empty()) out += "search " + join(search, " ") + "\n";
  if (!options.empty()) out += "options " + join(options, " ") + "\n";
  return out;
}

std::string host_network_hosts(const json::value& pod, std::string_view machine) {
  std::string out = "# Kubernetes-managed hosts file (host network).\n" + std::string(machine);
  add_aliases(pod, out);
  return out;
}

std::string hosts_for(const json::value& pod, const DnsRecords* records) {
  // The first line is how programs tell a file that is made for the pod from the machine's.
  std::string out =
      "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
      "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
  if (const std::string_view ip = json::get_string(pod, {"status", "podIP"}); !ip.empty()) {
    const std::string host = pod_hostname(pod);
    const std::string_view subdomain = json::get_string(pod, {"spec", "subdomain"});
    out += fmt::format("{}\t", ip);
    if (!subdomain.empty()) {
      out += fmt::format("{}.{}.{}.svc.{}\t", host, subdomain, api::ns(pod), kClusterDomain);
    }
    out += host + "\n";
  }
  add_aliases(pod, out);
  if (records == nullptr) return out;
  const std::string home = fmt::format(".{}.svc.{}", api::ns(pod), kClusterDomain);
  const std::string domain = "." + std::string(kClusterDomain);
  const std::string services = ".svc" + domain;
  for (const auto& [name, record] : records->names) {
    // The forms that a search list would have let a program use.
    std::string forms = name;
    for (const std::string* end : {&domain, &services, &home}) {
      if (name.ends_with(*end)) forms += " " + name.substr(0, name.size() - end->size());
    }
    for (const Ipv4 address : record.addresses) {
      out += fmt::format("{}\t{}\n", ipv4_text(address), forms);
    }
  }
  return out;
}

}  // namespace skiff::node
