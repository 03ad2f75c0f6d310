// A document that parses is written as one that means the same.
#include "base/fuzz.h"
#include "base/json.h"
#include "base/yaml.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  const auto documents = yaml::parse_all(text);
  if (!documents) return;
  for (const json::value& document : *documents) {
    const std::string written = yaml::serialize(document);
    const auto again = yaml::parse(written);
    SKIFF_CHECK(again.has_value(), "what was written parses: " + written);
    SKIFF_CHECK(json::serialize(*again) == json::serialize(document),
                "and means the same: " + written);
  }
}
