#include "api/authentication/authentication.h"

namespace skiff::api {
namespace {

Kind authentication_question(std::string plural, std::string kind) {
  Kind out{.resource = {"authentication.k8s.io", "v1", plural, kind, false},
           .has_generation = false,
           .verbs = {"create"},
           .schema = "io.k8s.api.authentication.v1." + kind,
           .columns = {{"Age", "date", ".metadata.creationTimestamp"}}};
  out.singular = plural.substr(0, plural.size() - 1);
  return out;
}

}  // namespace

Kind token_review_kind() { return authentication_question("tokenreviews", "TokenReview"); }
Kind self_subject_review_kind() {
  return authentication_question("selfsubjectreviews", "SelfSubjectReview");
}

}  // namespace skiff::api
