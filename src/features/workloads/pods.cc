#include "features/workloads/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "base/sha256.h"

namespace skiff::workloads {
namespace {

// As Kubernetes: no vowels and nothing that looks like another, so that no words come out.
constexpr std::string_view kSafeLetters = "bcdfghjklmnpqrstvwxz2456789";

std::string letters(std::string_view text, std::size_t count) {
  const auto digest = sha256(text);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += kSafeLetters[static_cast<unsigned char>(digest[i]) % kSafeLetters.size()];
  }
  return out;
}

void write_sorted(const json::value& v, std::string& out) {
  if (v.is_object()) {
    std::vector<std::string_view> keys;
    for (const auto& member : v.get_object()) keys.push_back(member.key());
    std::ranges::sort(keys);
    out += '{';
    for (const std::string_view key : keys) {
      out += json::serialize(json::value(json::string(key))) + ":";
      write_sorted(v.get_object().at(key), out);
      out += ',';
    }
    out += '}';
  } else if (v.is_array()) {
    out += '[';
    for (const json::value& item : v.get_array()) {
      write_sorted(item, out);
      out += ',';
    }
    out += ']';
  } else {
    out += json::serialize(v);
  }
}

client::Write write_on(client::Verb verb, const api::Resource& resource,
                       const json::value& object) {
  return {.verb = verb,
          .resource = resource,
          .ns = std::string(api::ns(object)),
          .name = std::string(api::name(object)),
          .uid = std::string(api::uid(object))};
}

}  // namespace

const api::Resource& pod_resource() {
  static const api::Resource kResource{.version = "v1", .plural = "pods", .kind = "Pod"};
  return kResource;
}

const api::Resource& replica_set_resource() {
  static const api::Resource kResource{
      .group = "apps", .version = "v1", .plural = "replicasets", .kind = "ReplicaSet"};
  return kResource;
}

const api::Resource& deployment_resource() {
  static const api::Resource kResource{
      .group = "apps", .version = "v1", .plural = "deployments", .kind = "Deployment"};
  return kResource;
}

const api::Resource& job_resource() {
  static const api::Resource kResource{
      .group = "batch", .version = "v1", .plural = "jobs", .kind = "Job"};
  return kResource;
}

std::string_view phase(const json::value& pod) {
  return json::get_string(pod, {"status", "phase"});
}

bool ended(const json::value& pod) { return phase(pod) == "Succeeded" || phase(pod) == "Failed"; }

bool active(const json::value& pod) { return !ended(pod) && !api::deleting(pod); }

bool ready(const json::value& pod) { return api::condition_true(pod, "Ready"); }

std::optional<Duration> until_available(const json::value& pod, std::int64_t min_ready_s,
                                        Time now) {
  if (!ready(pod)) return std::nullopt;
  if (min_ready_s == 0) return Duration(0);
  const json::value since = *api::condition(pod, "Ready");
  const auto at = parse_time(json::get_string(since, {"lastTransitionTime"}));
  if (!at) return std::nullopt;
  return *at + std::chrono::seconds(min_ready_s) - now;
}

json::value pod_from(const json::value& pod_template, std::string name, const json::value& owner) {
  json::object meta;
  meta["name"] = std::move(name);
  for (const std::string_view key : {"labels", "annotations", "finalizers"}) {
    if (const json::value* found = json::find(pod_template, {"metadata", key})) meta[key] = *found;
  }
  meta["ownerReferences"] = json::array{api::owner_reference(owner)};
  return json::object{{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", std::move(meta)},
                      {"spec", json::get_object(pod_template, {"spec"})}};
}

NewNames::NewNames(const json::value& root, const std::vector<Object>& taken, Time now)
    : root_(root), now_(now) {
  for (const Object& object : taken) taken_.emplace(api::name(*object));
}

std::string NewNames::next(std::string_view prefix) {
  // A plan that was cut short is made again from the same root and maybe at the same time.
  while (true) {
    std::string name = fmt::format(
        "{}{}", prefix,
        letters(fmt::format("{}/{}/{}/{}", api::uid(root_), api::resource_version(root_),
                            now_.time_since_epoch().count(), ordinal_++),
                5));
    if (taken_.insert(name).second) return name;
  }
}

std::string template_hash(const json::value& pod_template, std::int64_t collisions) {
  std::string text;
  write_sorted(pod_template, text);
  return letters(fmt::format("{}{}", text, collisions), 10);
}

client::Write creation(const api::Resource& resource, const json::value& root, json::value body) {
  return {.resource = resource, .ns = std::string(api::ns(root)), .body = std::move(body)};
}

client::Write removal(const api::Resource& resource, const json::value& object) {
  client::Write out = write_on(client::Verb::kDelete, resource, object);
  out.body = json::object{
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  return out;
}

client::Write patch(const api::Resource& resource, const json::value& object, json::value body) {
  client::Write out = write_on(client::Verb::kMergePatch, resource, object);
  out.resource_version = api::resource_version(object);
  out.body = std::move(body);
  return out;
}

client::Write update(const api::Resource& resource, json::value body) {
  client::Write out = write_on(client::Verb::kUpdate, resource, body);
  out.resource_version = api::resource_version(body);
  out.body = std::move(body);
  return out;
}

client::Write release(const api::Resource& resource, const json::value& object,
                      std::string_view owner_uid) {
  json::array kept;
  for (const json::value& owner : json::get_array(object, {"metadata", "ownerReferences"})) {
    if (json::get_string(owner, {"uid"}) != owner_uid) kept.push_back(owner);
  }
  json::value owners = kept.empty() ? json::value(nullptr) : json::value(std::move(kept));
  return patch(resource, object,
               json::object{{"metadata", json::object{{"ownerReferences", std::move(owners)}}}});
}

std::vector<std::string> label_words(const json::object& labels) {
  std::vector<std::string> out;
  for (const auto& [key, value] : labels) {
    if (!value.is_string()) continue;
    out.push_back(fmt::format("{}={}", std::string_view(key), json::view(value.get_string())));
  }
  return out;
}

std::int64_t int_at(const json::value& object, std::initializer_list<std::string_view> path,
                    std::int64_t fallback) {
  return json::get_int(object, path).value_or(fallback);
}

std::int64_t scaled(const json::value* int_or_percent, std::int64_t total, bool round_up) {
  if (int_or_percent == nullptr) return 0;
  if (int_or_percent->is_int64()) return int_or_percent->get_int64();
  if (!int_or_percent->is_string()) return 0;
  const std::string_view text = json::view(int_or_percent->get_string());
  std::int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  return (percent * total + (round_up ? 99 : 0)) / 100;
}

void set_count(json::object& status, std::string_view key, std::int64_t count) {
  if (count == 0) {
    status.erase(key);
  } else {
    status[key] = count;
  }
}

std::vector<std::string> leave_out(control::Plan& plan, const control::Refusal& refusal) {
  std::vector<std::string> pods;
  std::size_t creations = 0;
  std::erase_if(plan.writes, [&](const client::Write& write) {
    if (write.verb != client::Verb::kCreate || creations++ < refusal.allowed) return false;
    if (write.resource.key() == pod_resource().key()) pods.emplace_back(api::name(write.body));
    return true;
  });
  return pods;
}

void sooner(std::optional<Duration>& requeue, Duration wait) {
  requeue = std::min(requeue.value_or(wait), wait);
}

}  // namespace skiff::workloads
