#include "api/authorization/authorization.h"

namespace skiff::api {
namespace {

Kind authorization_question(std::string plural, std::string kind, bool namespaced) {
  Kind out{.resource = {"authorization.k8s.io", "v1", plural, kind, namespaced},
           .has_generation = false,
           .verbs = {"create"},
           .schema = "io.k8s.api.authorization.v1." + kind,
           .columns = {{"Age", "date", ".metadata.creationTimestamp"}}};
  out.singular = plural.substr(0, plural.size() - 1);
  return out;
}

}  // namespace

Kind subject_access_review_kind() {
  return authorization_question("subjectaccessreviews", "SubjectAccessReview", false);
}
Kind self_subject_access_review_kind() {
  return authorization_question("selfsubjectaccessreviews", "SelfSubjectAccessReview", false);
}
Kind local_subject_access_review_kind() {
  return authorization_question("localsubjectaccessreviews", "LocalSubjectAccessReview", true);
}
Kind self_subject_rules_review_kind() {
  return authorization_question("selfsubjectrulesreviews", "SelfSubjectRulesReview", false);
}

}  // namespace skiff::api
