#include <gtest/gtest.h>

#include "api/meta.h"
#include "base/yaml.h"
#include "cli/access_review.h"
#include "cli/edit_text.h"
#include "cli/explain.h"
#include "cli/json_path.h"
#include "cli/metadata_change.h"
#include "cli/output.h"
#include "cli/testing/objects.h"
#include "cli/wait_for.h"

namespace skiff::cli {
namespace {

using testing::doc;

using namespace std::chrono_literals;

// --- jsonpath ---

const json::value& listed_pods() {
  static const json::value value = doc(R"(
items:
- metadata: {name: a, labels: {app: web, "a.b/c": x}}
  status:
    phase: Running
    size: 3
    conditions: [{type: Ready, status: "True"}, {type: Other, status: "False"}]
- metadata: {name: b}
  status: {phase: Pending, size: 10}
- metadata: {name: c}
  status: {phase: Running, size: 7, ready: true}
)");
  return value;
}

TEST(JsonPath, FindsWhatKubectlFinds) {
  struct Case {
    std::string_view path, text;
  };
  const Case cases[] = {
      {"{.items[0].metadata.name}", "a"},
      {".items[0].metadata.name", "a"},
      {"items[0].metadata.name", "a"},
      {"{$.items[1].status.size}", "10"},
      {"{.items[-1].metadata.name}", "c"},
      {"{.items[*].metadata.name}", "a b c"},
      {"{.items[0:2].metadata.name}", "a b"},
      {"{.items[::2].metadata.name}", "a c"},
      {"{.items[-2:].metadata.name}", "b c"},
      {"{.items[0,2].metadata.name}", "a c"},
      {"{.items[0].metadata['name','labels'].app}", "web"},
      {"{.items[0].metadata.labels['a.b/c']}", "x"},
      {"{.items[0].metadata.labels.a\\.b/c}", "x"},
      {"{..name}", "a b c"},
      {"{.items[?(@.status.phase==\"Running\")].metadata.name}", "a c"},
      {"{.items[?(@.status.phase != 'Running')].metadata.name}", "b"},
      {"{.items[?(@.status.size > 3)].metadata.name}", "b c"},
      {"{.items[?(@.status.size <= 7)].metadata.name}", "a c"},
      {"{.items[?(@.status.ready)].metadata.name}", "c"},
      {"{.items[0].status.conditions[?(@.type=='Ready')].status}", "True"},
      {"{.items[2].status.ready}", "true"},
      {"{.items[0].status.conditions[0]}", R"({"type":"Ready","status":"True"})"},
      {"{.items[9].metadata.name}", ""},
      {"{.nothing.at.all}", ""},
      {"name: {.items[0].metadata.name}, {\"\\t\"}{.items[0].status.size}", "name: a, \t3"},
      {"{range .items[*]}{.metadata.name}={.status.phase}{\"\\n\"}{end}",
       "a=Running\nb=Pending\nc=Running\n"},
      {"{range .items[0:1]}{range .status.conditions[*]}{.type};{end}{end}", "Ready;Other;"},
      {"{.items[0].metadata.name}{\"}\"}", "a}"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    const auto path = JsonPath::parse(c.path);
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_EQ(path->render(listed_pods()), c.text);
  }
}

TEST(JsonPath, IsRefusedWhereItIsNone) {
  for (const std::string_view path :
       {"{.a", "{.a[}", "{.a[x]}", "{.a['b}", "{.a[1:2:3:4]}", "{.a[?(@.b ==)]}", "{end}",
        "{range .a[*]}", "{.a[?(@.b == c)]}", "{.a..}", "{.a[0:1:0]}", "{abc}"}) {
    EXPECT_FALSE(JsonPath::parse(path)) << path;
  }
}

// --- output ---

std::string named(const json::value& object) { return "pod/" + std::string(api::name(object)); }

TEST(Output, TakesTheFormsOfKubectl) {
  const json::array objects = json::get_array(listed_pods(), {"items"});
  const auto text = [&](std::string_view form, json::array all, bool list = true) {
    const auto format = parse_format(form);
    EXPECT_TRUE(format) << format.error().message;
    return *render(*format, std::move(all), list, named);
  };
  EXPECT_EQ(text("name", objects), "pod/a\npod/b\npod/c\n");
  EXPECT_EQ(text("jsonpath={.items[*].metadata.name}", objects), "a b c");
  EXPECT_EQ(text("jsonpath={.metadata.name}", {objects[0]}, false), "a");
  EXPECT_EQ(text("custom-columns=NAME:.metadata.name,READY:{.status.ready},C:.items[0,1]", objects),
            "NAME   READY    C\na      <none>   <none>\nb      <none>   <none>\n"
            "c      true     <none>\n");
  EXPECT_EQ(text("json", {json::object{{"a", 1}}}, false), "{\n  \"a\": 1\n}\n");
  EXPECT_EQ(text("yaml", {json::object{{"a", 1}}}, false), "a: 1\n");
  EXPECT_TRUE(text("yaml", {json::object{{"a", 1}}}, true).contains("kind: List"));
  EXPECT_TRUE(parse_format("")->table());
  EXPECT_TRUE(parse_format("wide")->table());
}

TEST(Output, RefusesWhatItDoesNotKnow) {
  for (const std::string_view form : {"xml", "jsonpath=", "jsonpath={.a", "custom-columns=NAME",
                                      "custom-columns=:.a", "go-template={{.a}}"}) {
    EXPECT_FALSE(parse_format(form)) << form;
  }
}

// --- explain ---

const json::value& document() {
  static const json::value value = doc(R"(
components:
  schemas:
    g.v1.Thing:
      description: A thing.
      type: object
      x-kubernetes-group-version-kind: [{group: g, version: v1, kind: Thing}]
      required: [spec]
      properties:
        spec: {$ref: "#/components/schemas/g.v1.ThingSpec"}
        kind:
          type: string
          description: >-
            What it is, in words that are many and go on until the line is so long that
            it has to be broken into two.
    g.v1.ThingSpec:
      description: What it should be.
      type: object
      properties:
        mode: {type: string, enum: ["", Fast, Slow, Odd, Even]}
        when: {$ref: "#/components/schemas/Time"}
        parts: {type: array, items: {$ref: "#/components/schemas/g.v1.Part"}}
        labels: {type: object, additionalProperties: {type: string}}
        byName: {type: object, additionalProperties: {$ref: "#/components/schemas/g.v1.Part"}}
        any: {allOf: [{$ref: "#/components/schemas/g.v1.Part"}], default: {}}
        free: {x-kubernetes-preserve-unknown-fields: true}
    g.v1.Part:
      type: object
      required: [size]
      properties:
        size: {type: integer}
        inner: {$ref: "#/components/schemas/g.v1.Part"}
    Time: {type: string, format: date-time}
)");
  return value;
}

const api::Resource kThing{.group = "g", .version = "v1", .plural = "things", .kind = "Thing"};

TEST(Explain, AKindAsKubectlDoes) {
  EXPECT_EQ(*explain_text(document(), kThing, {}, false),
            "GROUP:      g\nKIND:       Thing\nVERSION:    v1\n\n"
            "DESCRIPTION:\n    A thing.\n\n"
            "FIELDS:\n"
            "  kind\t<string>\n"
            "    What it is, in words that are many and go on until the line is so long that\n"
            "    it has to be broken into two.\n\n"
            "  spec\t<ThingSpec> -required-\n    <no description>\n\n\n");
}

TEST(Explain, AFieldWithItsTypes) {
  EXPECT_EQ(*explain_text(document(), kThing, {"spec"}, true),
            "GROUP:      g\nKIND:       Thing\nVERSION:    v1\n\n"
            "FIELD: spec <ThingSpec>\n\n"
            "DESCRIPTION:\n    What it should be.\n\n"
            "FIELDS:\n"
            "  any\t<Part>\n    inner\t<Part>\n    size\t<integer> -required-\n"
            "  byName\t<map[string]Part>\n    inner\t<Part>\n    size\t<integer> -required-\n"
            "  free\t<Object>\n"
            "  labels\t<map[string]string>\n"
            "  mode\t<string>\n  enum: \"\", Fast, Slow, Odd, ....\n"
            "  parts\t<[]Part>\n    inner\t<Part>\n    size\t<integer> -required-\n"
            "  when\t<string>\n\n");
  const std::string mode = *explain_text(document(), kThing, {"spec", "mode"}, false);
  EXPECT_TRUE(mode.contains("FIELD: mode <string>\nENUM:\n    \"\"\n    Fast\n")) << mode;
  // Through lists, maps and parts alike.
  for (const char* field : {"parts", "byName", "any"}) {
    EXPECT_TRUE(explain_text(document(), kThing, {"spec", field, "inner", "size"}, false)) << field;
  }
}

TEST(Explain, SaysWhichFieldDoesNotExist) {
  const auto error = explain_text(document(), kThing, {"spec", "colour"}, false).error();
  EXPECT_EQ(error.message, "field \"colour\" does not exist");
  EXPECT_FALSE(
      explain_text(document(), {.group = "g", .version = "v2", .kind = "Thing"}, {}, false));
}

TEST(Explain, FindsTheDocumentOfAGroup) {
  const json::value index = doc(R"({paths: {api/v1: {serverRelativeURL: /openapi/v3/api/v1?hash=1},
    apis/g/v1: {serverRelativeURL: /openapi/v3/apis/g/v1?hash=2}}})");
  EXPECT_EQ(document_target(index, kThing), "/openapi/v3/apis/g/v1?hash=2");
  EXPECT_EQ(document_target(index, {.version = "v1"}), "/openapi/v3/api/v1?hash=1");
  EXPECT_EQ(document_target(index, {.group = "h", .version = "v1"}), "");
}

// --- wait ---

TEST(WaitFor, KnowsWhenItIsMet) {
  struct Case {
    std::string_view wait_for, object;
    bool met;
  };
  const Case cases[] = {
      {"create", "{}", true},
      {"create", "", false},
      {"delete", "", true},
      {"delete", "{}", false},
      {"condition=Ready", "status: {conditions: [{type: Ready, status: 'True'}]}", true},
      {"condition=ready=true", "status: {conditions: [{type: Ready, status: 'True'}]}", true},
      {"condition=Ready", "status: {conditions: [{type: Ready, status: 'False'}]}", false},
      {"condition=Ready=False", "status: {conditions: [{type: Ready, status: 'False'}]}", true},
      {"condition=Ready=Unknown", "status: {}", false},
      {"condition=Ready", "", false},
      {"condition=Ready",
       "{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'True', "
       "observedGeneration: 1}]}}",
       false},
      {"jsonpath={.status.phase}=Running", "status: {phase: Running}", true},
      {"jsonpath='{.status.phase}'=Running", "status: {phase: Running}", true},
      {"jsonpath=.status.phase=Running", "status: {phase: Pending}", false},
      {"jsonpath={.status.size}=3", "status: {size: 3}", true},
      {"jsonpath={.status.ip}", "status: {ip: 10.0.0.1}", true},
      {"jsonpath={.status.ip}", "status: {}", false},
      {"jsonpath={.c[?(@.t==\"a\")].s}=x", "c: [{t: a, s: x}, {t: b, s: y}]", true},
      {"jsonpath={.c[*].s}=x", "c: [{s: x}, {s: x}]", false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.wait_for);
    const auto wait_for = WaitFor::parse(c.wait_for);
    ASSERT_TRUE(wait_for) << wait_for.error().message;
    const json::value object = doc(c.object);
    EXPECT_EQ(wait_for->met(c.object.empty() ? nullptr : &object), c.met) << c.object;
  }
  for (const std::string_view text : {"", "ready", "condition=", "jsonpath=", "jsonpath={.a"}) {
    EXPECT_FALSE(WaitFor::parse(text)) << text;
  }
}

TEST(WaitFor, ReadsTimesAsGoWritesThem) {
  EXPECT_EQ(parse_timeout("30s"), Duration(30s));
  EXPECT_EQ(parse_timeout("1h30m"), Duration(90min));
  EXPECT_EQ(parse_timeout("1.5s"), Duration(1500ms));
  EXPECT_EQ(parse_timeout("250ms"), Duration(250ms));
  EXPECT_EQ(parse_timeout("0"), Duration(0s));
  EXPECT_EQ(parse_timeout("-1s"), Duration(168h));
  for (const std::string_view text : {"", "soon", "5x", "s"}) {
    EXPECT_FALSE(parse_timeout(text)) << text;
  }
}

// --- label, annotate ---

TEST(MetadataChange, SetsAndRemoves) {
  EXPECT_TRUE(is_change("a=b"));
  EXPECT_TRUE(is_change("a-"));
  EXPECT_FALSE(is_change("web-0"));
  const auto change = parse_changes({"a=1", "b=", "c-", "note=x=y"});
  ASSERT_TRUE(change);
  EXPECT_EQ(change->set.back().second, "x=y");
  const json::value object = doc("metadata: {labels: {a: '1', c: old}}");
  const auto patch = metadata_patch(object, "labels", *change, false);
  ASSERT_TRUE(patch) << patch.error().message;
  EXPECT_EQ(json::serialize(*patch), R"({"metadata":{"labels":{"b":"","note":"x=y","c":null}}})");
}

TEST(MetadataChange, KeepsOtherValuesUnlessToldTo) {
  const json::value object = doc("metadata: {labels: {a: old}}");
  const auto change = *parse_changes({"a=new"});
  const auto refused = metadata_patch(object, "labels", change, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "'a' already has a value (old), and --overwrite is false");
  EXPECT_EQ(json::serialize(*metadata_patch(object, "labels", change, true)),
            R"({"metadata":{"labels":{"a":"new"}}})");
  EXPECT_TRUE(metadata_patch(object, "labels", *parse_changes({"a=old", "z-"}), false)->empty());
  EXPECT_FALSE(parse_changes({"a=1", "a-"}));
  EXPECT_FALSE(parse_changes({"=1"}));
}

// --- edit ---

TEST(Edit, SendsOnlyWhatWasChanged) {
  const json::value before = doc("{a: 1, b: {c: [1, 2], d: x}, e: gone}");
  const json::value after = doc("{a: 1, b: {c: [1], d: x, m: new}}");
  const json::object patch = merge_diff(before.as_object(), after.as_object());
  EXPECT_EQ(json::serialize(patch), R"({"b":{"c":[1],"m":"new"},"e":null})");
  json::value merged = before;
  merge_into(merged, patch);
  EXPECT_EQ(merged, after);
  EXPECT_TRUE(merge_diff(before.as_object(), before.as_object()).empty());
}

TEST(Edit, MergesAsTheStandardSays) {
  json::value target = doc("{a: {b: 1, c: 2}, d: 3}");
  merge_into(target, doc("{a: {b: null}, d: {e: {f: null, g: 1}}, h: [1, null]}"));
  EXPECT_EQ(target, doc("{a: {c: 2}, d: {e: {g: 1}}, h: [1, null]}"));
}

TEST(Edit, ShowsTheProblemAboveWhatWasTyped) {
  const std::string first = edit_buffer(doc("{a: 1}"), "");
  EXPECT_EQ(read_edit(first), doc("{a: 1}"));
  const std::string again = with_problem(first, "spec.x: wrong\nsecond line");
  EXPECT_TRUE(again.contains("ERROR: spec.x: wrong\n"));
  EXPECT_TRUE(again.contains("ERROR: second line\n"));
  EXPECT_EQ(read_edit(again), doc("{a: 1}"));
  // Text that is no YAML at all stays as it was typed, and errors do not pile up.
  const std::string broken = with_problem(with_problem("a: [\n", "one"), "two");
  EXPECT_TRUE(broken.ends_with("two\na: [\n")) << broken;
  EXPECT_FALSE(broken.contains("one"));
  EXPECT_TRUE(read_edit("# nothing\n")->is_null());
  EXPECT_FALSE(read_edit("just text"));
}

// --- auth ---

TEST(AccessReview, AsksAboutAResource) {
  const api::Kind tfjobs{
      .resource = {.group = "kubeflow.org", .version = "v1", .plural = "tfjobs", .kind = "TFJob"}};
  EXPECT_EQ(kind_word("tfjob/mnist"), "tfjob");
  EXPECT_EQ(
      json::serialize(access_review(question("delete", "tfjob/mnist", tfjobs, "status", "team"))),
      R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":)"
      R"({"resourceAttributes":{"verb":"delete","resource":"tfjobs","group":"kubeflow.org",)"
      R"("subresource":"status","name":"mnist","namespace":"team"}}})");
  const api::Kind nodes{.resource = {.version = "v1", .plural = "nodes", .namespaced = false}};
  EXPECT_EQ(question("get", "node", nodes, "", "team").ns, "");
  const Question unknown = question("get", "boats.sea.org/b", {}, "", "team");
  EXPECT_EQ(unknown.resource + "|" + unknown.group + "|" + unknown.name, "boats|sea.org|b");
  EXPECT_EQ(question("*", "*", {}, "", "").resource, "*");
}

TEST(AccessReview, AsksAboutAPath) {
  EXPECT_EQ(kind_word("/metrics"), "");
  EXPECT_EQ(json::serialize(access_review(question("get", "/metrics", {}, "", "team"))),
            R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":)"
            R"({"nonResourceAttributes":{"path":"/metrics","verb":"get"}}})");
}

TEST(AccessReview, ReadsTheAnswer) {
  EXPECT_TRUE(verdict_of(doc("status: {allowed: true}")).allowed);
  const Verdict no = verdict_of(doc("status: {allowed: false, reason: r, evaluationError: e}"));
  EXPECT_FALSE(no.allowed);
  EXPECT_EQ(no.reason, "r; e");
  EXPECT_FALSE(verdict_of(doc("{}")).allowed);
}

TEST(AccessReview, ListsRules) {
  EXPECT_EQ(json::serialize(rules_review("team")),
            R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview",)"
            R"("spec":{"namespace":"team"}})");
  EXPECT_EQ(rules_text(doc(R"(
status:
  incomplete: true
  evaluationError: not all
  resourceRules:
  - {verbs: [get, list], apiGroups: ["", apps], resources: [pods/log], resourceNames: [a]}
  nonResourceRules: [{verbs: [get], nonResourceURLs: [/healthz]}]
)")),
            "Resources                Non-Resource URLs   Resource Names   Verbs\n"
            "                         [/healthz]          []               [get]\n"
            "pods/log,pods.apps/log   []                  [a]              [get list]\n"
            "The list is not complete: not all\n");
}

TEST(AccessReview, SaysWhoWeAre) {
  EXPECT_EQ(
      whoami_text(doc("status: {userInfo: {username: jane, groups: [a, b], extra: {k: [v, w]}}}")),
      "ATTRIBUTE   VALUE\nUsername    jane\nGroups      [a b]\nExtra: k    [v w]\n");
}

}  // namespace
}  // namespace skiff::cli
