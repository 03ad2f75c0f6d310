// Kinds that are questions: created, answered, never stored. Who am I, may they, whose token is
// this, give me a token.
#pragma once

#include <optional>

#include "apiserver/access/authorizer.h"
#include "apiserver/access/tokens.h"
#include "apiserver/authn.h"
#include "apiserver/writes.h"
#include "base/result.h"

namespace skiff::apiserver {

struct Answerer {
  const Authorizer& authorizer;
  const Authenticator& authenticator;
  ServiceTokens& tokens;
  const SchemaGate& gate;
  const env::Clock& clock;
};

// Nothing where the request is not one of these questions. The answer is the object with its
// status.
std::optional<Result<Outcome>> answer_question(const Answerer& answerer,
                                               const WriteRequest& request);

}  // namespace skiff::apiserver
