#include "node/loopback/table.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/strings.h"

namespace skiff::node {
namespace {

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return port;
}

std::optional<ServiceTarget> target_of(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  const auto ip = parse_ip(text.substr(0, colon));
  const auto port = port_of(text.substr(colon + 1));
  if (!ip || !port) return {};
  return ServiceTarget{.ip = *ip, .port = *port};
}

}  // namespace

std::string to_text(const LedTable& table) {
  std::string out = fmt::format("names {}\n", table.names_port);
  for (const ServicePort& service : table.services) {
    for (const std::uint32_t ip : service.ips) {
      out += fmt::format("{} {} {}", service.udp ? "udp" : "tcp", format_ip(ip), service.port);
      for (const ServiceTarget& to : service.targets) {
        out += fmt::format(" {}:{}", format_ip(to.ip), to.port);
      }
      out += '\n';
    }
  }
  return out;
}

LedTable read_table(std::string_view text) {
  LedTable table;
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == "names") {
      table.names_port = port_of(words[1]).value_or(0);
    }
    if (words.size() < 3 || (words[0] != "tcp" && words[0] != "udp")) continue;
    const auto ip = parse_ip(words[1]);
    const auto port = port_of(words[2]);
    if (!ip || !port) continue;
    ServicePort service{.ips = {*ip}, .udp = words[0] == "udp", .port = *port};
    for (std::size_t i = 3; i < words.size(); ++i) {
      if (const auto target = target_of(words[i])) service.targets.push_back(*target);
    }
    table.services.push_back(std::move(service));
  }
  return table;
}

}  // namespace skiff::node
