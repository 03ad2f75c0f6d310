// JSON patch, merge patch and strategic merge, on one document: DOCUMENT 0xff PATCH.
#include "base/fuzz.h"
#include "base/json.h"
#include "schema/json_patch.h"
#include "schema/merge_patch.h"
#include "schema/registry.h"
#include "schema/strategic_merge.h"

namespace {

constexpr std::string_view kDefinitions =
    "Pod object\n"
    " metadata @Meta\n"
    " spec @Spec\n"
    "Meta object\n"
    " name s\n"
    " labels {s}\n"
    " finalizers [s] ps=merge\n"
    "Spec object\n"
    " containers [@Container] lt=map lk=name pk=name ps=merge\n"
    " strategy @Strategy ps=retainKeys\n"
    " tolerations [@Meta]\n"
    "Container object\n"
    " name! s\n"
    " ports [@Port] lt=map lk=containerPort pk=containerPort ps=merge\n"
    "Port object\n"
    " containerPort! i:int32\n"
    "Strategy object\n"
    " type s\n"
    " more o\n";

}  // namespace

SKIFF_FUZZ(text) {
  using namespace skiff;
  static const schema::Registry kRegistry(kDefinitions);
  static const schema::SchemaPtr kPod = kRegistry.find("Pod");
  SKIFF_CHECK(kPod != nullptr, "the definitions are read");
  const auto document = json::parse(next_part(text));
  const auto patch = json::parse(text);
  if (!document || !patch) return;
  (void)schema::apply_json_patch(*document, *patch);
  (void)schema::apply_strategic_merge(kRegistry, *kPod, *document, *patch);

  json::value merged = *document;
  schema::apply_merge_patch(merged, *patch);
  json::value twice = merged;
  schema::apply_merge_patch(twice, *patch);
  SKIFF_CHECK(twice == merged, "a merge patch changes nothing the second time");
  if (document->is_object() && patch->is_object()) {
    const json::value back = schema::make_merge_patch(*document, merged);
    json::value again = *document;
    schema::apply_merge_patch(again, back);
    SKIFF_CHECK(again == merged, "the patch between two makes one into the other");
  }
}
