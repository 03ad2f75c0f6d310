// Request bodies in Kubernetes' protobuf envelope.
#include "apiserver/protobuf.h"
#include "base/fuzz.h"
#include "base/json.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  const auto decoded = apiserver::decode_protobuf(text);
  if (!decoded) return;
  const auto again = json::parse(json::serialize(*decoded));
  SKIFF_CHECK(again && *again == *decoded, "what was decoded is JSON");
}
