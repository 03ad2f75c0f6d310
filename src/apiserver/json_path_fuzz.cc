// JSONPath of printer columns: PATH 0xff DOCUMENT.
#include "apiserver/json_path.h"
#include "base/fuzz.h"
#include "base/json.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  static const json::value kDocument = {
      {"a", {{"b", {1, 2, 3}}, {"c.d", "e"}}},
      {"status",
       {{"conditions", {{{"type", "Ready"}, {"status", "True"}}, {{"type", "Failed"}}}}}}};
  const auto path = apiserver::JsonPath::parse(next_part(text));
  if (!path) return;
  (void)path->find(kDocument);
  if (const auto document = json::parse(text)) (void)path->find(*document);
}
