// What parses can be written and parses again to the same.
#include "base/fuzz.h"
#include "base/json.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  const auto first = json::parse(text);
  if (!first) return;
  const std::string written = json::serialize(*first);
  const auto second = json::parse(written);
  SKIFF_CHECK(second.has_value(), "what was written parses: " + written);
  SKIFF_CHECK(json::serialize(*second) == written, "and means the same: " + written);
  const auto pretty = json::parse(json::pretty(*first));
  SKIFF_CHECK(pretty && json::serialize(*pretty) == written, "also when it is indented");
}
