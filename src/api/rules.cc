#include "api/rules.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

std::string_view special_range(std::string_view text) {
  std::array<unsigned char, 16> a{};
  const std::string copy(text);
  if (inet_pton(AF_INET, copy.c_str(), a.data()) == 1) {
    // 127.64.0.0/10 are pods, where they have no network of their own.
    if (a[0] == 127 && a[1] >> 6 != 1) {
      return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    }
    if (a[0] == 169 && a[1] == 254) {
      return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    }
    if (a[0] == 224 && a[1] == 0 && a[2] == 0) {
      return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    }
  } else if (inet_pton(AF_INET6, copy.c_str(), a.data()) == 1) {
    const bool zeros = std::ranges::all_of(a.begin(), a.end() - 1, [](auto b) { return b == 0; });
    if (zeros && a[15] == 1) return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    if (a[0] == 0xFE && (a[1] & 0xC0) == 0x80) {
      return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    }
    if (a[0] == 0xFF && (a[1] & 0x0F) == 0x02) {
      return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    }
  }
  return {};
}

}  // namespace

void Rules::add(std::vector<Cause> causes) {
  for (Cause& cause : causes) out_.push_back(std::move(cause));
}

bool Rules::needs(const json::value& at, std::string_view path, std::string_view field,
                  std::string_view detail) {
  if (!json::get_string(at, {field}).empty()) return true;
  say(schema::required(child(path, field), detail));
  return false;
}

void Rules::called(std::string path, std::string_view text, const names::Complaints& complaints) {
  for (const std::string& one : complaints) say(schema::invalid(path, json::string(text), one));
}

void Rules::one_of(std::string path, std::string_view text,
                   const std::vector<std::string>& allowed) {
  if (std::ranges::find(allowed, text) != allowed.end()) return;
  say(schema::unsupported(std::move(path), json::string(text), allowed));
}

void Rules::maybe_one_of(const json::value& at, std::string_view path, std::string_view field,
                         const std::vector<std::string>& allowed) {
  if (present(at, {field}) != nullptr) {
    one_of(child(path, field), json::get_string(at, {field}), allowed);
  }
}

void Rules::not_negative(std::string path, std::int64_t number) {
  if (number < 0) say(schema::invalid(std::move(path), number, kNotNegative));
}

void Rules::not_negative(const json::value& at, std::string_view path, std::string_view field) {
  not_negative(child(path, field), json::get_int(at, {field}).value_or(0));
}

void Rules::port(std::string path, std::int64_t number) {
  if (number < 1 || number > 65535) say(schema::invalid(std::move(path), number, kPortRange));
}

void Rules::ip(std::string path, std::string_view text) {
  if (is_ip(text)) return;
  say(schema::invalid(std::move(path), json::string(text),
                      "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
}

void Rules::endpoint_ip(std::string path, std::string_view text) {
  if (!is_ip(text)) {
    say(schema::invalid(std::move(path), json::string(text), "must be a valid IP address"));
  } else if (text == "0.0.0.0" || text == "::") {
    say(schema::invalid(std::move(path), json::string(text),
                        fmt::format("may not be unspecified ({})", text)));
  } else if (const std::string_view why = special_range(text); !why.empty()) {
    say(schema::invalid(std::move(path), json::string(text), why));
  }
}

void Rules::labels(const json::object& labels, const std::string& path) {
  for (const auto& [key, value] : labels) {
    called(path, key, names::check_label_key(key));
    const std::string_view text = value.is_string() ? json::view(value.get_string()) : "";
    called(path, text, names::check_label_value(text));
  }
}

void Rules::requirement(const json::value& requirement, const std::string& path) {
  const std::string_view op = json::get_string(requirement, {"operator"});
  const json::array& values = json::get_array(requirement, {"values"});
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      say(schema::required(child(path, "values"),
                           "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      say(schema::forbidden(child(path, "values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else {
    say(schema::invalid(child(path, "operator"), json::string(op),
                        "not a valid selector operator"));
  }
  const std::string_view key = json::get_string(requirement, {"key"});
  called(child(path, "key"), key, names::check_label_key(key));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string_view text = values[i].is_string() ? json::view(values[i].get_string()) : "";
    called(child(child(path, "values"), i), text, names::check_label_value(text));
  }
}

void Rules::label_selector(const json::value* selector, const std::string& path) {
  if (selector == nullptr) return;
  labels(json::get_object(*selector, {"matchLabels"}), child(path, "matchLabels"));
  const json::array& terms = json::get_array(*selector, {"matchExpressions"});
  for (std::size_t i = 0; i < terms.size(); ++i) {
    requirement(terms[i], child(child(path, "matchExpressions"), i));
  }
}

void Rules::same(const json::value* now, const json::value* before, std::string path) {
  if (same_value(now, before)) return;
  say(schema::invalid(std::move(path), now == nullptr ? json::value() : *now, kImmutable));
}

void Rules::csi_driver_name(std::string path, std::string_view name) {
  constexpr std::size_t kMost = 63;
  if (name.empty()) say(schema::required(path));
  if (name.size() > kMost) say(schema::too_long(path, kMost));
  called(std::move(path), name, names::check_dns1123_subdomain(lower(name)));
}

void Rules::no_backsteps(std::string path, std::string_view text) {
  if (std::ranges::count(split(text, '/'), "..") == 0) return;
  say(schema::invalid(std::move(path), json::string(text), "must not contain '..'"));
}

void Rules::percent_or_number(const json::value& v, const std::string& path) {
  if (!v.is_string()) {
    not_negative(path, json::get_int(v, {}).value_or(0));
    return;
  }
  std::string_view text = json::view(v.get_string());
  std::int64_t number = 0;
  const bool percent = text.ends_with('%') && text.size() > 1 &&
                       text.find_first_not_of("0123456789") == text.size() - 1;
  if (!percent) {
    say(schema::invalid(path, v,
                        "a valid percent string must be a numeric string followed by an ending "
                        "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"));
    return;
  }
  text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number > 100) {
    say(schema::invalid(path, v, "must not be greater than 100%"));
  }
}

const json::value* present(const json::value& v, std::initializer_list<std::string_view> path) {
  const json::value* found = json::find(v, path);
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool same_value(const json::value* a, const json::value* b) {
  const auto nothing = [](const json::value* v) {
    return v == nullptr || v->is_null() || (v->is_string() && v->get_string().empty()) ||
           (v->is_array() && v->get_array().empty());
  };
  if (nothing(a) || nothing(b)) return nothing(a) == nothing(b);
  return *a == *b;
}

void put(json::object& o, std::string_view key, json::value value) {
  o.emplace(key, std::move(value));
}

json::object* find_object(json::object& o, std::string_view key) {
  json::value* v = o.if_contains(key);
  return v == nullptr ? nullptr : v->if_object();
}

Quantity quantity_of(const json::value& v) { return Quantity::from_json(v).value_or(Quantity()); }

bool is_ipv4(std::string_view text) {
  std::array<unsigned char, 16> room{};
  return inet_pton(AF_INET, std::string(text).c_str(), room.data()) == 1;
}

bool is_ip(std::string_view text) {
  std::array<unsigned char, 16> room{};
  return is_ipv4(text) || inet_pton(AF_INET6, std::string(text).c_str(), room.data()) == 1;
}

}  // namespace skiff::api
