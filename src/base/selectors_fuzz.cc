// Label and field selectors; the text of one is a selector that selects the same.
#include "base/fuzz.h"
#include "base/json.h"
#include "base/selectors.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  static const json::object kLabels = {
      {"a", "b"}, {"app", "web"}, {"n", "5"}, {"k8s.io/name", "x"}, {"empty", ""}};
  static const json::value kObject = {
      {"metadata", {{"name", "a"}, {"labels", kLabels}, {"namespace", "default"}}},
      {"status", {{"phase", "Running"}, {"count", 3}, {"ready", true}}}};
  if (const auto labels = LabelSelector::parse(text)) {
    const auto again = LabelSelector::parse(labels->text());
    SKIFF_CHECK(again.has_value(), "its text is a selector: " + labels->text());
    SKIFF_CHECK(again->text() == labels->text(), "the same one: " + labels->text());
    SKIFF_CHECK(again->matches(kLabels) == labels->matches(kLabels), "it selects the same");
    SKIFF_CHECK(labels->matches(kLabels) == labels->matches_object(kObject), "by either way");
  }
  if (const auto fields = FieldSelector::parse(text)) (void)fields->matches_object(kObject);
  if (const auto object = json::parse(text)) {
    if (const auto labels = LabelSelector::from_object(*object)) (void)labels->matches(kLabels);
  }
}
