#include <algorithm>
#include <set>

#include "api/cells.h"
#include "api/checks.h"
#include "api/help.h"
#include "api/meta.h"
#include "api/networking/networking.h"
#include "api/rules.h"
#include "base/ip.h"
#include "base/names.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::string_view kIngressClassAnnotation = "kubernetes.io/ingress.class";
constexpr std::string_view kNoAddress = "must be a DNS name, not an IP address";

void set_ingress_defaults(json::value& object) {
  json::object* root = object.if_object();
  if (root == nullptr) return;
  object_in(*root, "spec");
  if (json::object* status = object_in(*root, "status")) object_in(*status, "loadBalancer");
}

names::Complaints check_wildcard(std::string_view host) {
  names::Complaints out;
  if (host.size() > 253) out.emplace_back("must be no more than 253 characters");
  if (host.starts_with("*.") && names::check_dns1123_subdomain(host.substr(2)).empty()) return out;
  out.emplace_back(
      "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
      "which must consist of lower case alphanumeric characters, '-' or '.' and end with an "
      "alphanumeric character (e.g. '*.example.com', regex used for validation is "
      R"('\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'))");
  return out;
}

names::Complaints check_host(std::string_view host) {
  return host.find('*') != host.npos ? check_wildcard(host) : names::check_dns1123_subdomain(host);
}

void check_ingress_segment(std::string_view text, const std::string& path, Causes& out) {
  if (text.empty()) {
    out.push_back(schema::required(path));
  }
  for (const std::string& bad : names::check_path_segment(text)) {
    out.push_back(schema::invalid(path, json::string(text), bad));
  }
}

void check_ingress_reference(const json::value& reference, const std::string& path, Causes& out) {
  if (present(reference, {"apiGroup"}) != nullptr) {
    const std::string_view group = json::get_string(reference, {"apiGroup"});
    for (const std::string& bad : names::check_dns1123_subdomain(group)) {
      out.push_back(schema::invalid(child(path, "apiGroup"), json::string(group), bad));
    }
  }
  for (const std::string_view field : {"kind", "name"}) {
    check_ingress_segment(json::get_string(reference, {field}), child(path, field), out);
  }
}

void check_ingress_service(const json::value& service, const std::string& path, Causes& out) {
  const std::string_view name = json::get_string(service, {"name"});
  const std::string at = child(path, "service");
  if (name.empty()) {
    out.push_back(schema::required(child(at, "name")));
  } else {
    for (const std::string& bad : names::check_dns1035_label(name)) {
      out.push_back(schema::invalid(child(at, "name"), json::string(name), bad));
    }
  }
  const std::string_view port = json::get_string(service, {"port", "name"});
  const std::int64_t number = count(service, {"port", "number"});
  if (!port.empty() && number != 0) {
    out.push_back(schema::invalid(path, "", "cannot set both port name & port number"));
  } else if (!port.empty()) {
    for (const std::string& bad : names::check_port_name(port)) {
      out.push_back(schema::invalid(child(at, "port.name"), json::string(port), bad));
    }
  } else if (number == 0) {
    out.push_back(schema::required(path, "port name or number is required"));
  } else if (number < 1 || number > 65535) {
    out.push_back(schema::invalid(child(at, "port.number"), number,
                                  "must be between 1 and 65535, inclusive"));
  }
}

void check_backend(const json::value& backend, const std::string& path, Causes& out) {
  const json::value* resource = present(backend, {"resource"});
  const json::value* service = present(backend, {"service"});
  if (resource != nullptr && service != nullptr) {
    out.push_back(schema::invalid(path, "", "cannot set both resource and service backends"));
  } else if (resource != nullptr) {
    check_ingress_reference(*resource, child(path, "resource"), out);
  } else if (service != nullptr) {
    check_ingress_service(*service, path, out);
  } else {
    out.push_back(schema::invalid(path, "", "resource or service backend is required"));
  }
}

void check_path(const json::value& rule, const std::string& path, Causes& out) {
  if (present(rule, {"pathType"}) == nullptr) {
    out.push_back(schema::required(child(path, "pathType"), "pathType must be specified"));
    return;
  }
  const std::string_view type = json::get_string(rule, {"pathType"});
  const std::string_view text = json::get_string(rule, {"path"});
  const auto say = [&](const std::string& sentence) {
    out.push_back(schema::invalid(child(path, "path"), json::string(text), sentence));
  };
  if (type == "Exact" || type == "Prefix") {
    if (!text.starts_with('/')) say("must be an absolute path");
    for (const std::string_view bad : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (text.find(bad) != text.npos) say("must not contain '" + std::string(bad) + "'");
    }
    for (const std::string_view bad : {"/..", "/."}) {
      if (text.ends_with(bad)) say("cannot end with '" + std::string(bad) + "'");
    }
  } else if (type == "ImplementationSpecific") {
    if (!text.empty() && !text.starts_with('/')) say("must be an absolute path");
  } else {
    out.push_back(schema::unsupported(child(path, "pathType"), json::string(type),
                                      {"Exact", "ImplementationSpecific", "Prefix"}));
  }
  static const json::value kNothing = json::object();
  const json::value* backend = present(rule, {"backend"});
  check_backend(backend == nullptr ? kNothing : *backend, child(path, "backend"), out);
}

void check_ingress_rules(const json::array& rules, Causes& out) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string path = child("spec.rules", i);
    const std::string_view host = json::get_string(rules[i], {"host"});
    if (!host.empty()) {
      if (parse_ip(host)) {
        out.push_back(schema::invalid(child(path, "host"), json::string(host), kNoAddress));
      }
      for (const std::string& bad : check_host(host)) {
        out.push_back(schema::invalid(child(path, "host"), json::string(host), bad));
      }
    }
    if (present(rules[i], {"http"}) == nullptr) continue;
    const json::array& paths = json::get_array(rules[i], {"http", "paths"});
    const std::string at = child(path, "http.paths");
    if (paths.empty()) out.push_back(schema::required(at));
    for (std::size_t k = 0; k < paths.size(); ++k) check_path(paths[k], child(at, k), out);
  }
}

void check_tls(const json::array& list, Causes& out) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = child("spec.tls", i);
    const json::array& hosts = json::get_array(list[i], {"hosts"});
    for (std::size_t k = 0; k < hosts.size(); ++k) {
      const std::string_view host = json::get_string(hosts[k], {});
      for (const std::string& bad : check_host(host)) {
        out.push_back(schema::invalid(child(child(path, "hosts"), k), json::string(host), bad));
      }
    }
    const std::string_view secret = json::get_string(list[i], {"secretName"});
    if (secret.empty()) continue;
    for (const std::string& bad : names::check_dns1123_subdomain(secret)) {
      out.push_back(schema::invalid(child(path, "secretName"), json::string(secret), bad));
    }
  }
}

void check_ingress_status(const json::value& object, Causes& out) {
  const json::array& list = json::get_array(object, {"status", "loadBalancer", "ingress"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = child("status.loadBalancer.ingress", i);
    const std::string_view ip = json::get_string(list[i], {"ip"});
    if (!ip.empty() && !parse_ip(ip)) {
      out.push_back(
          schema::invalid(child(path, "ip"), json::string(ip),
                          "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    }
    const std::string_view host = json::get_string(list[i], {"hostname"});
    if (host.empty()) continue;
    for (const std::string& bad : names::check_dns1123_subdomain(host)) {
      out.push_back(schema::invalid(child(path, "hostname"), json::string(host), bad));
    }
    if (parse_ip(host)) {
      out.push_back(schema::invalid(child(path, "hostname"), json::string(host), kNoAddress));
    }
  }
}

std::vector<Cause> validate_ingress(const json::value& object, const Admission& context) {
  Causes out;
  if (context.subresource == "status") {
    check_ingress_status(object, out);
    return out;
  }
  static const json::value kNothing = json::object();
  const json::value* found = json::find(object, {"spec"});
  const json::value& spec = found == nullptr ? kNothing : *found;
  const json::array& rules = json::get_array(spec, {"rules"});
  const json::value* backend = present(spec, {"defaultBackend"});
  if (rules.empty() && backend == nullptr) {
    // An empty list is gone from the object, but not from what was sent.
    const json::value* sent =
        context.sent == nullptr ? nullptr : json::find(*context.sent, {"spec", "rules"});
    const json::value shown = sent == nullptr ? json::value() : *sent;
    out.push_back(
        schema::invalid("spec", shown, "either `defaultBackend` or `rules` must be specified"));
  }
  if (backend != nullptr) check_backend(*backend, "spec.defaultBackend", out);
  check_ingress_rules(rules, out);
  check_tls(json::get_array(spec, {"tls"}), out);
  const std::string_view name = json::get_string(spec, {"ingressClassName"});
  const bool named = present(spec, {"ingressClassName"}) != nullptr;
  if (named) {
    for (const std::string& bad : names::check_dns1123_subdomain(name)) {
      out.push_back(schema::invalid("spec.ingressClassName", json::string(name), bad));
    }
  }
  const json::object& notes = json::get_object(object, {"metadata", "annotations"});
  if (context.old == nullptr && named && notes.contains(kIngressClassAnnotation) &&
      text_in(notes, kIngressClassAnnotation) != name) {
    out.push_back(schema::invalid("annotations." + std::string(kIngressClassAnnotation),
                                  json::string(text_in(notes, kIngressClassAnnotation)),
                                  "must match `ingressClassName` when both are specified"));
  }
  return out;
}

std::vector<std::string> ingress_warnings(const json::value& object, const Admission& context) {
  if (context.old != nullptr || json::find(object, {"spec", "ingressClassName"}) != nullptr ||
      !json::get_object(object, {"metadata", "annotations"}).contains(kIngressClassAnnotation)) {
    return {};
  }
  return {"annotation \"" + std::string(kIngressClassAnnotation) +
          "\" is deprecated, please use 'spec.ingressClassName' instead"};
}

std::string hosts_cell(const json::array& rules) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> hosts;
  bool more = false;
  for (const json::value& rule : rules) {
    more = more || hosts.size() == kShown;
    const std::string_view host = json::get_string(rule, {"host"});
    if (!more && !host.empty()) hosts.emplace_back(host);
  }
  if (hosts.empty()) return "*";
  std::string out = join(hosts, ",");
  if (more) out += " + " + std::to_string(rules.size() - kShown) + " more...";
  return out;
}

std::string ingress_address_cell(const json::value& object) {
  std::set<std::string> found;
  for (const json::value& in : json::get_array(object, {"status", "loadBalancer", "ingress"})) {
    const std::string_view ip = json::get_string(in, {"ip"});
    const std::string_view text = ip.empty() ? json::get_string(in, {"hostname"}) : ip;
    if (!text.empty()) found.emplace(text);
  }
  constexpr std::size_t kWidth = 16;
  std::string out = join({found.begin(), found.end()}, ",");
  // A table does not say whether it is asked for wide, so it is as narrow as the usual one.
  if (out.size() > kWidth) out = out.substr(0, kWidth - 3) + "...";
  return out;
}

json::array ingress_cells(const json::value& object, std::int64_t now_s) {
  return {json::string(or_none(json::get_string(object, {"spec", "ingressClassName"}))),
          json::string(hosts_cell(json::get_array(object, {"spec", "rules"}))),
          json::string(ingress_address_cell(object)),
          json::get_array(object, {"spec", "tls"}).empty() ? "80" : "80, 443",
          json::string(age_cell(object, now_s))};
}

void default_ingress_class(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  json::object* parameters = spec == nullptr ? nullptr : object_in(*spec, "parameters", false);
  if (parameters == nullptr) return;
  json::value& scope = (*parameters)["scope"];
  if (scope.is_null()) scope = "Cluster";
}

void check_class_parameters(const json::value& parameters, Causes& out) {
  const std::string path = "spec.parameters";
  check_ingress_reference(parameters, path, out);
  const std::string_view scope = json::get_string(parameters, {"scope"});
  const json::value* ns = present(parameters, {"namespace"});
  if (scope == "Namespace") {
    if (ns == nullptr) {
      out.push_back(
          schema::required(child(path, "namespace"), "`parameters.scope` is set to 'Namespace'"));
      return;
    }
    for (const std::string& bad : names::check_dns1123_label(json::get_string(*ns, {}))) {
      out.push_back(schema::invalid(child(path, "namespace"), *ns, bad));
    }
  } else if (scope == "Cluster") {
    if (ns != nullptr) {
      out.push_back(
          schema::forbidden(child(path, "namespace"), "`parameters.scope` is set to 'Cluster'"));
    }
  } else {
    out.push_back(
        schema::unsupported(child(path, "scope"), json::string(scope), {"Cluster", "Namespace"}));
  }
}

std::vector<Cause> validate_ingress_class(const json::value& object, const Admission& context) {
  Causes out;
  const std::string_view controller = json::get_string(object, {"spec", "controller"});
  const std::string path = "spec.controller";
  if (context.old != nullptr &&
      controller != json::get_string(*context.old, {"spec", "controller"})) {
    out.push_back(schema::invalid(path, json::string(controller), "field is immutable"));
  }
  constexpr std::size_t kMostBytes = 250;
  if (controller.size() > kMostBytes) out.push_back(schema::too_long(path, kMostBytes));
  check_domain_path(controller, path, out);
  const json::value* parameters = json::find(object, {"spec", "parameters"});
  if (parameters != nullptr && parameters->is_object()) check_class_parameters(*parameters, out);
  return out;
}

json::array ingress_class_cells(const json::value& object, std::int64_t now_s) {
  std::string text = "<none>";
  const json::value* parameters = json::find(object, {"spec", "parameters"});
  if (parameters != nullptr && parameters->is_object()) {
    text = json::get_string(*parameters, {"kind"});
    if (present(*parameters, {"apiGroup"}) != nullptr) {
      text += "." + std::string(json::get_string(*parameters, {"apiGroup"}));
    }
    text += "/" + std::string(json::get_string(*parameters, {"name"}));
  }
  return {json::string(json::get_string(object, {"spec", "controller"})), json::string(text),
          json::string(age_cell(object, now_s))};
}

}  // namespace

Kind ingress_kind() {
  return {.resource = {"networking.k8s.io", "v1", "ingresses", "Ingress", true},
          .singular = "ingress",
          .short_names = {"ing"},
          .has_status = true,
          .schema = "io.k8s.api.networking.v1.Ingress",
          .columns = {{"Class", "string", "", 0,
                       "The name of the IngressClass resource that should be used for additional "
                       "configuration"},
                      {"Hosts", "string", "", 0,
                       "Hosts that incoming requests are matched against before the ingress rule"},
                      {"Address", "string", "", 0,
                       "Address is a list containing ingress points for the load-balancer"},
                      {"Ports", "string", "", 0, "Ports of TLS configurations that open"},
                      {"Age", "string", "", 0, std::string(kAgeHelp)}},
          .set_defaults = set_ingress_defaults,
          .validate = validate_ingress,
          .warnings = ingress_warnings,
          .cells = ingress_cells};
}

Kind ingress_class_kind() {
  return {.resource = {"networking.k8s.io", "v1", "ingressclasses", "IngressClass", false},
          .singular = "ingressclass",
          .schema = "io.k8s.api.networking.v1.IngressClass",
          .columns = {{"Controller", "string", "", 0,
                       "Controller that is responsible for handling this class"},
                      {"Parameters", "string", "", 0,
                       "A reference to a resource with additional parameters"},
                      {"Age", "string", "", 0, std::string(kAgeHelp)}},
          .set_defaults = default_ingress_class,
          .validate = validate_ingress_class,
          .cells = ingress_class_cells};
}

std::vector<Kind> networking_kinds() {
  return {ingress_kind(), ingress_class_kind(), network_policy_kind()};
}

}  // namespace skiff::api
