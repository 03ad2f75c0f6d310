// Rules that many kinds share, in Kubernetes' words. Collects what is wrong, in order.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/quantity.h"
#include "base/result.h"
#include "schema/causes.h"

namespace skiff::api {

// Ranges of the numbers that users give most.
inline constexpr std::string_view kPortRange = "must be between 1 and 65535, inclusive";
inline constexpr std::string_view kNotNegative = "must be greater than or equal to 0";
inline constexpr std::string_view kImmutable = "field is immutable";

class Rules {
 public:
  // One more than an error lists is enough to know that there are others.
  void say(Cause cause) {
    if (out_.size() <= limits::kNamedCauses) out_.push_back(std::move(cause));
  }
  void add(std::vector<Cause> causes);
  std::vector<Cause> take() { return std::move(out_); }
  bool empty() const { return out_.empty(); }

  // Text that must be there. True where it is.
  bool needs(const json::value& at, std::string_view path, std::string_view field,
             std::string_view detail = {});
  // What the text may be called; the complaints are of base/names.h.
  void called(std::string path, std::string_view text, const names::Complaints& complaints);
  // One of the allowed words. An absent or empty field is none of them.
  void one_of(std::string path, std::string_view text, const std::vector<std::string>& allowed);
  // The same where it may be absent.
  void maybe_one_of(const json::value& at, std::string_view path, std::string_view field,
                    const std::vector<std::string>& allowed);
  void not_negative(std::string path, std::int64_t number);
  void not_negative(const json::value& at, std::string_view path, std::string_view field);
  void port(std::string path, std::int64_t number);
  void ip(std::string path, std::string_view text);
  // An address that endpoints may have: no loopback, link-local or multicast one.
  void endpoint_ip(std::string path, std::string_view text);
  void labels(const json::object& labels, const std::string& path);
  void label_selector(const json::value* selector, const std::string& path);
  void same(const json::value* now, const json::value* before, std::string path);
  void csi_driver_name(std::string path, std::string_view name);
  void no_backsteps(std::string path, std::string_view text);
  void percent_or_number(const json::value& v, const std::string& path);

 private:
  void requirement(const json::value& requirement, const std::string& path);

  std::vector<Cause> out_;
};

// Null where the path is absent or null.
const json::value* present(const json::value& v, std::initializer_list<std::string_view> path);
// Equal, where absent, null and empty are the same.
bool same_value(const json::value* a, const json::value* b);
// Fills a field that is absent.
void put(json::object& o, std::string_view key, json::value value);
// The object at the key, or null.
json::object* find_object(json::object& o, std::string_view key);
// Runs `f` on every object of the list under `key`.
template <class F>
void each(json::object& o, std::string_view key, F f) {
  json::value* list = o.if_contains(key);
  if (list == nullptr || !list->is_array()) return;
  for (json::value& item : list->get_array()) {
    if (json::object* inner = item.if_object()) f(*inner);
  }
}
// Zero where it cannot be read: the schema has refused it.
Quantity quantity_of(const json::value& v);
bool is_ip(std::string_view text);
bool is_ipv4(std::string_view text);

}  // namespace skiff::api
