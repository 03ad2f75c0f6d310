// Request bodies in Kubernetes' protobuf envelope.
#include "api/builtin.h"
#include "apiserver/wire/protobuf.h"
#include "base/fuzz.h"
#include "base/json.h"
#include "schema/registry.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  static const schema::Registry kRegistry(api::builtin_definitions());
  const auto decoded = apiserver::decode_protobuf(kRegistry, text);
  if (!decoded) return;
  const std::string written = json::serialize(*decoded);
  const auto again = json::parse(written);
  SKIFF_CHECK(again && json::serialize(*again) == written, "what was decoded is JSON: " + written);
}
