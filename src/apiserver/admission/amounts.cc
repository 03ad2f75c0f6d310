#include "apiserver/admission/amounts.h"

namespace skiff::apiserver {
namespace {

std::string_view name_of(Side side) { return side == Side::kRequests ? "requests" : "limits"; }

bool restarts(const json::value& container) {
  return json::get_string(container, {"restartPolicy"}) == "Always";
}

bool for_whole_pod(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-");
}

}  // namespace

Amounts read_amounts(const json::object& list) {
  Amounts out;
  for (const auto& [name, value] : list) {
    if (const auto quantity = Quantity::from_json(value)) out.emplace(std::string(name), *quantity);
  }
  return out;
}

json::object write_amounts(const Amounts& amounts) {
  json::object out;
  for (const auto& [name, quantity] : amounts) out[name] = quantity.text();
  return out;
}

void add(Amounts& to, const Amounts& more) {
  for (const auto& [name, quantity] : more) {
    const auto [at, fresh] = to.emplace(name, quantity);
    if (!fresh) at->second += quantity;
  }
}

void raise(Amounts& to, const Amounts& floor) {
  for (const auto& [name, quantity] : floor) {
    const auto [at, fresh] = to.emplace(name, quantity);
    if (!fresh && at->second < quantity) at->second = quantity;
  }
}

Amounts pod_amounts(const json::value& spec, Side side, Overhead overhead) {
  Amounts sum, restartable, initial;
  const auto of = [&](const json::value& container) {
    return read_amounts(json::get_object(container, {"resources", name_of(side)}));
  };
  for (const json::value& container : json::get_array(spec, {"containers"})) {
    add(sum, of(container));
  }
  for (const json::value& container : json::get_array(spec, {"initContainers"})) {
    Amounts now = of(container);
    if (restarts(container)) {
      add(sum, now);
      add(restartable, now);
      now = restartable;
    } else {
      add(now, restartable);
    }
    raise(initial, now);
  }
  raise(sum, initial);
  for (const auto& [name, quantity] :
       read_amounts(json::get_object(spec, {"resources", name_of(side)}))) {
    if (for_whole_pod(name)) sum[name] = quantity;
  }
  if (overhead == Overhead::kWith) {
    for (const auto& [name, quantity] : read_amounts(json::get_object(spec, {"overhead"}))) {
      // Overhead belongs to a limit only where there is one.
      if (side == Side::kLimits && !sum.contains(name)) continue;
      add(sum, {{name, quantity}});
    }
  }
  return sum;
}

}  // namespace skiff::apiserver
