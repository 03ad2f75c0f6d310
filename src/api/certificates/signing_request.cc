#include "api/certificates/signing_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/cells.h"
#include "api/rules.h"
#include "base/base64.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

const std::vector<std::string>& usages() {
  static const std::vector<std::string> kUsages = {"any",
                                                   "cert sign",
                                                   "client auth",
                                                   "code signing",
                                                   "content commitment",
                                                   "crl sign",
                                                   "data encipherment",
                                                   "decipher only",
                                                   "digital signature",
                                                   "email protection",
                                                   "encipher only",
                                                   "ipsec end system",
                                                   "ipsec tunnel",
                                                   "ipsec user",
                                                   "key agreement",
                                                   "key encipherment",
                                                   "microsoft sgc",
                                                   "netscape sgc",
                                                   "ocsp signing",
                                                   "s/mime",
                                                   "server auth",
                                                   "signing",
                                                   "timestamping"};
  return kUsages;
}

void copy_request_member(json::object& to, const json::value& from,
                         std::initializer_list<std::string_view> path, std::string_view name) {
  const json::value* v = json::find(from, path);
  if (v != nullptr) {
    to[name] = *v;
  } else {
    to.erase(name);
  }
}

// Conditions get the times that the client does not tell.
void stamp_conditions(json::value& object, const json::value& old, std::string_view now) {
  json::object& status = json::make_object(object, {"status"});
  each(status, "conditions", [&](json::object& condition) {
    if (json::get_string(condition, {"lastUpdateTime"}).empty()) {
      condition["lastUpdateTime"] = json::string(now);
    }
    if (!json::get_string(condition, {"lastTransitionTime"}).empty()) return;
    std::string_view since = now;
    for (const json::value& before : json::get_array(old, {"status", "conditions"})) {
      if (json::get_string(before, {"type"}) == json::get_string(condition, {"type"}) &&
          json::get_string(before, {"status"}) == json::get_string(condition, {"status"})) {
        since = json::get_string(before, {"lastTransitionTime"}, now);
      }
    }
    condition["lastTransitionTime"] = json::string(since);
  });
}

// Who asks is told by the server. A spec never changes; each sub-resource changes its part of the
// status.
void prepare_signing_request(json::value& object, const Admission& context) {
  json::object* root = object.if_object();
  if (root == nullptr) return;
  if (context.old == nullptr) {
    json::object& spec = json::make_object(object, {"spec"});
    for (const std::string_view field : {"username", "uid", "groups", "extra"}) {
      if (context.user != nullptr) copy_request_member(spec, *context.user, {field}, field);
    }
    root->erase("status");
    return;
  }
  const json::value& old = *context.old;
  copy_request_member(*root, old, {"spec"}, "spec");
  if (context.subresource.empty()) {
    copy_request_member(*root, old, {"status"}, "status");
    return;
  }
  stamp_conditions(object, old, context.now);
  if (context.subresource == "approval") {
    copy_request_member(json::make_object(object, {"status"}), old, {"status", "certificate"},
                        "certificate");
  }
}

void check_signer(std::string_view name, Rules& rules) {
  const std::string path = "spec.signerName";
  if (name.empty()) {
    rules.say(schema::required(path));
    return;
  }
  const auto segments = split(name, '/');
  if (segments.size() != 2) {
    rules.say(schema::invalid(
        path, json::string(name),
        "must be a fully qualified domain and path of the form 'example.com/signer-name'"));
    return;
  }
  const auto check = [&](std::string_view segment, auto rule) {
    for (const std::string_view label : split(segment, '.')) {
      const names::Complaints bad = rule(label);
      if (bad.empty()) continue;
      for (const std::string& one : bad) {
        rules.say(schema::invalid(path, json::string(segment),
                                  fmt::format("validating label \"{}\": {}", label, one)));
      }
      break;
    }
  };
  check(segments[0], names::check_dns1123_label);
  if (!segments[0].contains('.')) {
    rules.say(schema::invalid(path, json::string(segments[0]),
                              "should be a domain with at least two segments separated by dots"));
  }
  check(segments[1], names::check_dns1123_subdomain);
}

void check_usages(const json::value& object, Rules& rules) {
  const std::vector<std::string> given = json::strings(json::get_array(object, {"spec", "usages"}));
  if (given.empty()) rules.say(schema::required("spec.usages"));
  for (std::size_t i = 0; i < given.size(); ++i) {
    rules.one_of(child("spec.usages", i), given[i], usages());
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!seen.insert(given[i]).second) {
      rules.say(schema::duplicate(child("spec.usages", i), json::string(given[i])));
    }
  }
}

void check_approval_conditions(const json::value& object, Rules& rules) {
  const std::string path = "status.conditions";
  const json::array& list = json::get_array(object, {"status", "conditions"});
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view type = json::get_string(list[i], {"type"});
    rules.needs(list[i], at, "type");
    const bool only_true = type == "Approved" || type == "Denied" || type == "Failed";
    if (rules.needs(list[i], at, "status")) {
      rules.one_of(child(at, "status"), json::get_string(list[i], {"status"}),
                   only_true ? std::vector<std::string>{"True"}
                             : std::vector<std::string>{"False", "True", "Unknown"});
    }
    if ((type == "Approved" && seen.contains("Denied")) ||
        (type == "Denied" && seen.contains("Approved"))) {
      rules.say(schema::invalid(path, json::string(type),
                                "Approved and Denied conditions are mutually exclusive"));
    }
    if (!seen.insert(type).second) {
      rules.say(schema::duplicate(child(at, "type"), json::string(type)));
    }
  }
}

json::array conditions_of(const json::value& object, std::string_view type) {
  json::array out;
  for (const json::value& c : json::get_array(object, {"status", "conditions"})) {
    if (json::get_string(c, {"type"}) == type) out.push_back(c);
  }
  return out;
}

void check_signing_request_update(const json::value& object, const Admission& context,
                                  Rules& rules) {
  const json::value& old = *context.old;
  for (const std::string_view type : {"Approved", "Denied", "Failed"}) {
    if (conditions_of(object, type).size() < conditions_of(old, type).size()) {
      rules.say(schema::forbidden(
          "status.conditions",
          fmt::format("updates may not remove a condition of type \"{}\"", type)));
    }
  }
  for (const std::string_view type : {"Approved", "Denied"}) {
    if (context.subresource == "approval") break;
    const json::array now = conditions_of(object, type), before = conditions_of(old, type);
    if (now.size() < before.size() || now == before) continue;
    rules.say(schema::forbidden("status.conditions",
                                fmt::format("updates may not {} a condition of type \"{}\"",
                                            now.size() > before.size() ? "add" : "modify", type)));
  }
  const std::string_view before = json::get_string(old, {"status", "certificate"});
  if (json::get_string(object, {"status", "certificate"}) == before) return;
  if (context.subresource != "status") {
    rules.say(schema::forbidden("status.certificate", "updates may not set certificate content"));
  } else if (!before.empty()) {
    rules.say(schema::forbidden("status.certificate",
                                "updates may not modify existing certificate content"));
  }
}

std::vector<Cause> validate_signing_request(const json::value& object, const Admission& context) {
  Rules rules;
  const std::string_view request = json::get_string(object, {"spec", "request"});
  const auto pem = base64::decode(request);
  if (!pem || !pem->contains("-----BEGIN CERTIFICATE REQUEST-----") ||
      !pem->contains("-----END CERTIFICATE REQUEST-----")) {
    rules.say(schema::invalid("spec.request", json::string(request),
                              "PEM block type must be CERTIFICATE REQUEST"));
  }
  check_usages(object, rules);
  const std::string_view signer = json::get_string(object, {"spec", "signerName"});
  if (signer == "kubernetes.io/legacy-unknown") {
    rules.say(schema::invalid("spec.signerName", json::string(signer),
                              "the legacy signerName is not allowed via this API version"));
  } else {
    check_signer(signer, rules);
  }
  const auto seconds = json::get_int(object, {"spec", "expirationSeconds"});
  if (seconds && *seconds < 600) {
    rules.say(schema::invalid("spec.expirationSeconds", *seconds,
                              "may not specify a duration less than 600 seconds (10 minutes)"));
  }
  check_approval_conditions(object, rules);
  if (context.old != nullptr) check_signing_request_update(object, context, rules);
  return rules.take();
}

std::string signing_request_status_cell(const json::value& object) {
  std::string out = !conditions_of(object, "Denied").empty()     ? "Denied"
                    : !conditions_of(object, "Approved").empty() ? "Approved"
                                                                 : "Pending";
  if (!conditions_of(object, "Failed").empty()) out += ",Failed";
  if (!json::get_string(object, {"status", "certificate"}).empty()) out += ",Issued";
  return out;
}

json::array signing_request_cells(const json::value& object, std::int64_t now_s) {
  const auto seconds = json::get_int(object, {"spec", "expirationSeconds"});
  return {json::string(age_cell(object, now_s)),
          json::string(or_none(json::get_string(object, {"spec", "signerName"}))),
          json::string(json::get_string(object, {"spec", "username"})),
          json::string(seconds ? age(std::chrono::seconds(*seconds)) : "<none>"),
          json::string(signing_request_status_cell(object))};
}

}  // namespace

std::vector<Kind> certificates_kinds() {
  return {{.resource = {"certificates.k8s.io", "v1", "certificatesigningrequests",
                        "CertificateSigningRequest", false},
           .singular = "certificatesigningrequest",
           .short_names = {"csr"},
           .has_status = true,
           .has_generation = false,
           .subresources = {{"approval", "CertificateSigningRequest", {"get", "patch", "update"}}},
           .schema = "io.k8s.api.certificates.v1.CertificateSigningRequest",
           .columns = {{"Age", "string"},
                       {"SignerName", "string"},
                       {"Requestor", "string"},
                       {"RequestedDuration", "string"},
                       {"Condition", "string"}},
           .selectable = {"spec.signerName"},
           .prepare = prepare_signing_request,
           .validate = validate_signing_request,
           .cells = signing_request_cells}};
}

}  // namespace skiff::api
