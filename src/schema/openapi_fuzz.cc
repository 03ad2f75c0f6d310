// A CRD's schema, and a value under it: SCHEMA 0xff VALUE.
#include "base/fuzz.h"
#include "base/json.h"
#include "schema/check.h"
#include "schema/defaults.h"
#include "schema/openapi.h"
#include "schema/prune.h"
#include "schema/registry.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  static const schema::Registry kRegistry;
  const auto written = json::parse(next_part(text));
  if (!written) return;
  const auto read = schema::from_openapi(*written);
  if (!read) return;
  const json::object out = schema::to_openapi(*read);
  const auto again = schema::from_openapi(json::value(out));
  SKIFF_CHECK(again.has_value(), "what is written can be read: " + json::serialize(out));
  SKIFF_CHECK(schema::to_openapi(*again) == out, "and is the same: " + json::serialize(out));
  if (auto value = json::parse(text)) {
    (void)schema::check(kRegistry, *read, *value, "");
    schema::apply_defaults(kRegistry, *read, *value);
    json::value twice = *value;
    schema::apply_defaults(kRegistry, *read, twice);
    SKIFF_CHECK(twice == *value, "defaults change nothing the second time");
    (void)schema::prune(kRegistry, *read, *value);
    SKIFF_CHECK(schema::prune(kRegistry, *read, *value).empty(), "nothing is pruned twice");
    (void)schema::duplicate_fields(text);
  }
}
