#include "apiserver/access/reviews.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/access/rules.h"
#include "apiserver/apply/tracking.h"
#include "apiserver/status.h"
#include "base/limits.h"
#include "base/selectors.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::int64_t kShortestToken = 600;
constexpr std::int64_t kLongestToken = 1LL << 32;
constexpr std::int64_t kUsualToken = 3600;

struct Question {
  const Answerer& by;
  const WriteRequest& request;
  json::value& object;  // the question; becomes the answer
};
using Answer = Result<void> (*)(Question& question);

Identity asked_about(const json::value& spec) {
  Identity out{.user = std::string(json::get_string(spec, {"user"})),
               .groups = json::strings(json::get_array(spec, {"groups"})),
               .uid = std::string(json::get_string(spec, {"uid"}))};
  for (const auto& [key, values] : json::get_object(spec, {"extra"})) {
    if (values.is_array()) out.extra[key] = json::strings(values.get_array());
  }
  return out;
}

const json::value* member(const json::value& spec, std::string_view name) {
  const json::value* at = json::find(spec, {name});
  return at == nullptr || at->is_null() ? nullptr : at;
}

Action asked_action(const json::value& spec) {
  if (const json::value* wanted = member(spec, "resourceAttributes")) {
    const auto text = [&](std::string_view name) {
      return std::string(json::get_string(*wanted, {name}));
    };
    return {.verb = text("verb"),
            .group = text("group"),
            .resource = text("resource"),
            .subresource = text("subresource"),
            .ns = text("namespace"),
            .name = text("name")};
  }
  return {.verb = std::string(json::get_string(spec, {"nonResourceAttributes", "verb"})),
          .on_path = true,
          .path = std::string(json::get_string(spec, {"nonResourceAttributes", "path"}))};
}

void check_selector(const json::value& spec, std::string_view name, std::vector<Cause>& causes) {
  const json::value* selector = json::find(spec, {"resourceAttributes", name});
  if (selector == nullptr || selector->is_null()) return;
  const std::string path = fmt::format("spec.resourceAttributes.{}", name);
  const std::string_view raw = json::get_string(*selector, {"rawSelector"});
  const bool requirements = !json::get_array(*selector, {"requirements"}).empty();
  if (!raw.empty() && requirements) {
    causes.push_back(invalid_value(path + ".rawSelector", json::string(raw),
                                   "may not specified at the same time as requirements"));
  }
  if (raw.empty() && !requirements) {
    causes.push_back(required(
        path + ".requirements",
        fmt::format("when {} is specified, requirements or rawSelector is required", path)));
  }
}

// As the real server shows them: its own struct, whose fields are not named for JSON.
json::value go_attributes(const json::value& path) {
  return json::object{{"Path", json::string(json::get_string(path, {"path"}))},
                      {"Verb", json::string(json::get_string(path, {"verb"}))}};
}

std::vector<Cause> check_attributes(const json::value& spec) {
  std::vector<Cause> causes;
  const json::value* path = member(spec, "nonResourceAttributes");
  const json::value* resource = member(spec, "resourceAttributes");
  if (resource != nullptr && path != nullptr) {
    causes.push_back(invalid_value("spec.nonResourceAttributes", go_attributes(*path),
                                   "cannot be specified in combination with resourceAttributes"));
  }
  if (resource == nullptr && path == nullptr) {
    causes.push_back(invalid_value("spec.resourceAttributes", nullptr,
                                   "exactly one of nonResourceAttributes or resourceAttributes "
                                   "must be specified"));
  }
  return causes;
}

std::vector<Cause> check_subject(const json::value& spec) {
  if (!json::get_string(spec, {"user"}).empty() || !json::get_array(spec, {"groups"}).empty()) {
    return {};
  }
  return {invalid_value("spec.user", "", "at least one of user or group must be specified")};
}

// A question has no name, label or owner.
void check_metadata_empty(const Question& question, std::vector<Cause>& causes) {
  json::object metadata = json::get_object(question.object, {"metadata"});
  metadata.erase("managedFields");
  metadata.erase("creationTimestamp");
  const bool local = question.request.kind->resource().namespaced;
  if (local) metadata.erase("namespace");
  if (metadata.empty()) return;
  causes.push_back(invalid_value("metadata", metadata,
                                 local ? "must be empty except for namespace" : "must be empty"));
}

Result<void> refuse(const Question& question, std::vector<Cause> causes) {
  if (causes.empty()) return {};
  api::Resource nameless = question.request.kind->resource();
  nameless.kind.clear();  // as the real server forgets it
  return std::unexpected(invalid(nameless, "", std::move(causes)));
}

void decide(Question& question, const Identity& who) {
  const json::value& spec = question.object.at("spec");
  const Decision decision = question.by.authorizer.decide(who, asked_action(spec));
  json::object status{{"allowed", decision.allowed}};
  if (!decision.reason.empty()) status["reason"] = decision.reason;
  std::vector<std::string> ignored;
  const std::string fields(
      json::get_string(spec, {"resourceAttributes", "fieldSelector", "rawSelector"}));
  const std::string labels(
      json::get_string(spec, {"resourceAttributes", "labelSelector", "rawSelector"}));
  constexpr std::string_view kIgnored = "spec.resourceAttributes.{} ignored due to parse error";
  if (!fields.empty() && !FieldSelector::parse(fields)) {
    ignored.push_back(fmt::format(kIgnored, "fieldSelector"));
  }
  if (!labels.empty() && !LabelSelector::parse(labels)) {
    ignored.push_back(fmt::format(kIgnored, "labelSelector"));
  }
  if (!ignored.empty()) status["evaluationError"] = join(ignored, "; ");
  question.object.get_object()["status"] = std::move(status);
}

std::vector<Cause> check_access_review(const Question& question, bool names_subject) {
  const json::value& spec = question.object.at("spec");
  std::vector<Cause> causes = check_attributes(spec);
  if (names_subject) {
    for (Cause& cause : check_subject(spec)) causes.push_back(std::move(cause));
  }
  check_selector(spec, "fieldSelector", causes);
  check_selector(spec, "labelSelector", causes);
  check_metadata_empty(question, causes);
  return causes;
}

Result<void> subject_access(Question& question) {
  SKIFF_TRY(refuse(question, check_access_review(question, true)));
  decide(question, asked_about(question.object.at("spec")));
  return {};
}

Result<void> self_subject_access(Question& question) {
  SKIFF_TRY(refuse(question, check_access_review(question, false)));
  decide(question, question.request.user);
  return {};
}

Result<void> local_subject_access(Question& question) {
  std::vector<Cause> causes = check_access_review(question, true);
  const json::value& spec = question.object.at("spec");
  const std::string_view ns = json::get_string(spec, {"resourceAttributes", "namespace"});
  if (member(spec, "resourceAttributes") != nullptr && ns != question.request.ns) {
    causes.push_back(invalid_value("spec.resourceAttributes.namespace", json::string(ns),
                                   "must match metadata.namespace"));
  }
  if (const json::value* path = member(spec, "nonResourceAttributes")) {
    causes.push_back(invalid_value("spec.nonResourceAttributes", go_attributes(*path),
                                   "disallowed on this kind of request"));
  }
  SKIFF_TRY(refuse(question, std::move(causes)));
  decide(question, asked_about(spec));
  return {};
}

// The rules of somebody, as long as they fit into an answer as large as a request may be.
struct RulesAnswer {
  json::array on_resources = {}, on_paths = {};
  bool incomplete = false;
  std::size_t bytes = 0;

  void add(const Rule& rule) {
    bytes += json_bytes(rule);
    if (bytes > limits::kRequestBodyBytes) incomplete = true;
    if (incomplete) return;
    if (!rule.resources.empty()) {
      json::object entry{{"verbs", words(rule.verbs)},
                         {"apiGroups", words(rule.groups)},
                         {"resources", words(rule.resources)}};
      if (!rule.names.empty()) entry["resourceNames"] = words(rule.names);
      on_resources.emplace_back(std::move(entry));
    }
    if (!rule.urls.empty()) {
      on_paths.emplace_back(
          json::object{{"verbs", words(rule.verbs)}, {"nonResourceURLs", words(rule.urls)}});
    }
  }
};

Result<void> self_subject_rules(Question& question) {
  const std::string ns(json::get_string(question.object, {"spec", "namespace"}));
  if (ns.empty()) return fail(Code::kBadRequest, "no namespace on request");
  std::vector<std::string> problems;
  RulesAnswer answer;
  const auto policy = question.by.authorizer.policy();
  for (const Rules& rules : policy->rules_for(question.request.user, ns, &problems)) {
    for (const Rule& rule : *rules) answer.add(rule);
  }
  if (answer.incomplete) {
    problems.emplace_back(
        "there are more rules than one answer can hold; ask about single actions with a "
        "SelfSubjectAccessReview");
  }
  json::object status{{"resourceRules", std::move(answer.on_resources)},
                      {"nonResourceRules", std::move(answer.on_paths)},
                      {"incomplete", answer.incomplete}};
  if (!problems.empty()) {
    const std::string list = join(problems, ", ");
    status["evaluationError"] = problems.size() > 1 ? "[" + list + "]" : list;
  }
  question.object.get_object()["spec"] = json::object();
  question.object.get_object()["status"] = std::move(status);
  return {};
}

Result<void> self_subject(Question& question) {
  json::object& root = question.object.get_object();
  root["metadata"] =
      json::object{{"creationTimestamp", json::string(rfc3339(question.by.clock.now()))}};
  root["status"] = json::object{{"userInfo", user_info(question.request.user)}};
  return {};
}

Result<void> token_review(Question& question) {
  const std::string token(json::get_string(question.object, {"spec", "token"}));
  if (token.empty()) {
    return fail(Code::kBadRequest, "token is required for TokenReview in authentication");
  }
  const auto known = question.by.authenticator.bearer(
      token, json::strings(json::get_array(question.object, {"spec", "audiences"})));
  json::object status;
  if (known) {
    status = {{"authenticated", true},
              {"user", user_info(known->identity)},
              {"audiences", words(known->audiences)}};
  } else {
    status = {{"user", json::object()}, {"error", known.error().message}};
  }
  question.object.get_object()["status"] = std::move(status);
  return {};
}

const api::Resource kTokenRequests{.group = "authentication.k8s.io",
                                   .version = "v1",
                                   .plural = "tokenrequests",
                                   .kind = "TokenRequest"};

Result<TokenWish> read_wish(const Question& question) {
  const json::value& object = question.object;
  const auto differs = [&](std::string_view field, std::string_view wanted) {
    const std::string_view given = json::get_string(object, {"metadata", field});
    return !given.empty() && given != wanted;
  };
  for (const auto& [field, wanted] :
       {std::pair<std::string_view, std::string_view>{"name", question.request.name},
        {"namespace", question.request.ns}}) {
    if (!differs(field, wanted)) continue;
    return std::unexpected(invalid(
        kTokenRequests, question.request.name,
        {invalid_value(fmt::format("metadata.{}", field),
                       json::string(json::get_string(object, {"metadata", field})),
                       fmt::format("must match the service account {} if specified", field))}));
  }
  TokenWish wish{
      .ns = question.request.ns,
      .account = question.request.name,
      .account_uid = std::string(api::uid(object)),
      .audiences = json::strings(json::get_array(object, {"spec", "audiences"})),
      .seconds = json::get_int(object, {"spec", "expirationSeconds"}).value_or(kUsualToken)};
  const auto wrong = [&](std::string_view why) {
    return std::unexpected(
        invalid(kTokenRequests, "", {invalid_value("spec.expirationSeconds", wish.seconds, why)}));
  };
  if (wish.seconds < kShortestToken) {
    return wrong("may not specify a duration less than 10 minutes");
  }
  if (wish.seconds > kLongestToken) {
    return wrong("may not specify a duration larger than 2^32 seconds");
  }
  if (const json::value* ref = json::find(object, {"spec", "boundObjectRef"});
      ref != nullptr && ref->is_object()) {
    wish.bound =
        TokenWish::Bound{.api_version = std::string(json::get_string(*ref, {"apiVersion"})),
                         .kind = std::string(json::get_string(*ref, {"kind"})),
                         .name = std::string(json::get_string(*ref, {"name"})),
                         .uid = std::string(json::get_string(*ref, {"uid"}))};
  }
  return wish;
}

Result<void> token_request(Question& question) {
  SKIFF_ASSIGN(const TokenWish wish, read_wish(question));
  SKIFF_ASSIGN(const MintedToken minted, question.by.tokens.mint(wish));
  json::value& object = question.object;
  json::set(object, {"metadata", "name"}, json::string(wish.account));
  json::set(object, {"metadata", "namespace"}, json::string(wish.ns));
  json::set(object, {"metadata", "uid"}, json::string(minted.account_uid));
  json::set(object, {"metadata", "creationTimestamp"},
            json::string(rfc3339(question.by.clock.now())));
  json::set(object, {"spec", "audiences"}, words(minted.audiences));
  json::set(object, {"spec", "expirationSeconds"}, wish.seconds);
  object.get_object()["status"] =
      json::object{{"token", json::string(minted.token)},
                   {"expirationTimestamp", json::string(rfc3339(minted.expires))}};
  return {};
}

struct Entry {
  std::string_view key;
  std::string_view subresource;
  std::string_view kind;
  Answer answer;
  bool tracked = false;  // who asked owns what was asked
};

constexpr Entry kQuestions[] = {
    {"selfsubjectaccessreviews.authorization.k8s.io", "", "SelfSubjectAccessReview",
     self_subject_access, true},
    {"subjectaccessreviews.authorization.k8s.io", "", "SubjectAccessReview", subject_access, true},
    {"localsubjectaccessreviews.authorization.k8s.io", "", "LocalSubjectAccessReview",
     local_subject_access, true},
    {"selfsubjectrulesreviews.authorization.k8s.io", "", "SelfSubjectRulesReview",
     self_subject_rules},
    {"selfsubjectreviews.authentication.k8s.io", "", "SelfSubjectReview", self_subject},
    {"tokenreviews.authentication.k8s.io", "", "TokenReview", token_review, true},
    {"serviceaccounts", "token", "TokenRequest", token_request},
};

ServedKind token_request_kind() {
  return {
      .kind = {.resource = kTokenRequests, .schema = "io.k8s.api.authentication.v1.TokenRequest"},
      .storage_version = "v1"};
}

// The question in good order: of its kind, without unknown fields, with a spec.
Result<json::value> read_question(const Answerer& answerer, const WriteRequest& request,
                                  const ServedKind& kind) {
  WriteRequest plain{.verb = request.verb, .kind = &kind, .ns = request.ns};
  json::value object = request.body;
  const json::object given = json::get_object(object, {"metadata"});
  // That of a TokenRequest is compared with the account, by its own rules.
  if (json::object* fresh = object.if_object();
      fresh != nullptr && request.subresource == "token") {
    fresh->erase("metadata");
  }
  SKIFF_TRY(match_body(plain, object));
  json::object& root = object.get_object();
  root["metadata"] = given;
  if (kind.resource().namespaced && request.subresource.empty()) {
    json::set(object, {"metadata", "namespace"}, json::string(request.ns));
  }
  json::make_object(object, {"spec"});
  // Go's empty list is null in JSON, where the schema wants a list.
  if (request.subresource == "token" && json::get_array(object, {"spec", "audiences"}).empty()) {
    json::set(object, {"spec", "audiences"}, json::array());
  }
  root.erase("status");
  answerer.gate.prune(kind, object);
  SKIFF_TRY(answerer.gate.check(kind, object));
  return object;
}

void track_question(const Answerer& answerer, const WriteRequest& request, json::value& object) {
  take_managed(object);
  json::value written = object;
  answerer.gate.complete_view(*request.kind, written);
  track_update(
      answerer.gate,
      {.kind = *request.kind, .manager = request.manager, .now = rfc3339(answerer.clock.now())},
      nullptr, nullptr, written);
  if (json::value managed = take_managed(written); !managed.is_null()) {
    json::make_object(object, {"metadata"})["managedFields"] = std::move(managed);
  }
}

}  // namespace

std::optional<Result<Outcome>> answer_question(const Answerer& answerer,
                                               const WriteRequest& request) {
  static const ServedKind kTokenRequest = token_request_kind();
  if (request.verb != Verb::kCreate) return {};
  const std::string key = request.kind->resource().key();
  const auto found = std::ranges::find_if(kQuestions, [&](const Entry& entry) {
    return entry.key == key && entry.subresource == request.subresource;
  });
  if (found == std::ranges::end(kQuestions)) return {};
  const bool of_account = !found->subresource.empty();
  const ServedKind& kind = of_account ? kTokenRequest : *request.kind;
  auto object = read_question(answerer, request, kind);
  if (!object) return std::unexpected(object.error());
  if (found->tracked) track_question(answerer, request, *object);
  Question question{.by = answerer, .request = request, .object = *object};
  if (auto done = found->answer(question); !done) return std::unexpected(done.error());
  return Outcome{.status = 201, .answer = std::move(*object)};
}

}  // namespace skiff::apiserver
