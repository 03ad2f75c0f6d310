#include "node/environment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "node/image.h"
#include "node/service_links.h"
#include "node/testing/parse.h"

namespace skiff::node {
namespace {

Result<json::value> look_up_sources(SourceKind kind, std::string_view name) {
  if (kind == SourceKind::kConfigMap && name == "map") {
    return parse(R"({"data":{"A":"from map","B":"b"}})");
  }
  if (kind == SourceKind::kSecret && name == "secret") {
    return parse(R"({"data":{"password":"aHVudGVyMg=="}})");
  }
  return fail(Code::kNotFound, "nothing");
}

const json::value kPod = parse(R"({"metadata":{"name":"p","namespace":"ns","uid":"u",
    "labels":{"a.b/c":"label"}},"spec":{"nodeName":"n1"},
    "status":{"podIP":"10.0.0.9","hostIP":"10.0.0.1"}})");

struct Built {
  std::string error = {};
  Variables variables = {};
  std::string operator[](std::string_view name) const {
    for (const auto& [known, value] : variables) {
      if (known == name) return value;
    }
    return "(absent)";
  }
};

Built build(std::string_view container_text, EnvironmentInput* base = nullptr) {
  const json::value container = parse(container_text);
  EnvironmentInput input{.pod = kPod, .container = container, .lookup = look_up_sources};
  if (base != nullptr) {
    input.machine = base->machine;
    input.venv = base->venv;
    input.image = base->image;
    input.services = base->services;
    input.api_host = base->api_host;
    input.api_port = base->api_port;
  }
  input.node_cpu_milli = 8000;
  input.node_memory_bytes = 1 << 30;
  auto built = build_environment(input);
  if (!built) return {.error = built.error().message};
  return {.variables = std::move(*built)};
}

TEST(Environment, PassesOnOnlyWhatHelpsFromTheMachine) {
  const json::value none;
  EnvironmentInput base{.pod = none, .container = none};
  base.machine = {{"PATH", "/opt/bin"}, {"HOME", "/home/u"},    {"PIP_INDEX_URL", "i"},
                  {"UV_X", "u"},        {"https_proxy", "p"},   {"NO_PROXY", "n"},
                  {"AWS_SECRET", "no"}, {"SSH_AUTH_SOCK", "no"}};
  base.api_host = "10.0.0.1";
  base.api_port = 7443;
  const Built built = build("{}", &base);
  EXPECT_EQ(built["PATH"], "/opt/bin");
  EXPECT_EQ(built["HOME"], "/home/u");
  EXPECT_EQ(built["LANG"], "C.UTF-8");
  EXPECT_EQ(built["PIP_INDEX_URL"], "i");
  EXPECT_EQ(built["UV_X"], "u");
  EXPECT_EQ(built["https_proxy"], "p");
  EXPECT_EQ(built["NO_PROXY"], "n");
  EXPECT_EQ(built["AWS_SECRET"], "(absent)");
  EXPECT_EQ(built["SSH_AUTH_SOCK"], "(absent)");
  EXPECT_EQ(built["HOSTNAME"], "p");
  EXPECT_EQ(built["KUBERNETES_SERVICE_HOST"], "10.0.0.1");
  EXPECT_EQ(built["KUBERNETES_SERVICE_PORT"], "7443");
}

TEST(Environment, AVirtualEnvironmentComesFirstOnThePath) {
  const json::value none;
  EnvironmentInput base{.pod = none, .container = none};
  base.machine = {{"PATH", "/bin"}};
  base.venv = "/v";
  const Built built = build("{}", &base);
  EXPECT_EQ(built["PATH"], "/v/bin:/bin");
  EXPECT_EQ(built["VIRTUAL_ENV"], "/v");
}

TEST(Environment, ServicesAreToldUnlessThePodSaysOtherwise) {
  const json::value none;
  EnvironmentInput base{.pod = none, .container = none};
  base.image = {{"A_SERVICE_HOST", "image"}};
  base.services = {{"A_SERVICE_HOST", "10.96.0.7"}, {"A_SERVICE_PORT", "80"}};
  const Built built =
      build(R"x({"env":[{"name":"A_SERVICE_PORT","value":"$(A_SERVICE_HOST):1"}]})x", &base);
  EXPECT_EQ(built["A_SERVICE_HOST"], "10.96.0.7");
  EXPECT_EQ(built["A_SERVICE_PORT"], "10.96.0.7:1");
}

// Counted in time of the processor, which other work on the machine does not use up.
TEST(Environment, OfANamespaceWithThousandsOfServicesIsBuiltAtOnce) {
  const json::value none;
  EnvironmentInput base{.pod = none, .container = none};
  constexpr int kMany = 40'000;  // more would be too large for any program
  for (int i = 0; i < kMany; ++i) {
    base.services.emplace_back("A_SERVICE_HOST_" + std::to_string(i), std::to_string(i));
  }
  base.services.emplace_back("A_SERVICE_HOST_0", "again");
  const std::clock_t before = std::clock();
  const Built built =
      build(R"x({"env":[{"name":"LAST","value":"$(A_SERVICE_HOST_39999)"}]})x", &base);
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 5);
  EXPECT_EQ(built["LAST"], "39999");
  EXPECT_EQ(built["A_SERVICE_HOST_0"], "again");
  EXPECT_EQ(std::ranges::count(built.variables, "A_SERVICE_HOST_0",
                               &std::pair<std::string, std::string>::first),
            1);
}

struct EnvironmentCase {
  std::string_view sentence;
  std::string_view container;
  std::string_view name;
  std::string_view value;
};

TEST(Environment, ResolvesWhatTheContainerSays) {
  const EnvironmentCase kCases[] = {
      {"a plain value", R"({"env":[{"name":"X","value":"1"}]})", "X", "1"},
      {"earlier variables are expanded",
       R"({"env":[{"name":"X","value":"1"},{"name":"Y","value":"$(X)2"}]})", "Y", "12"},
      {"later ones are not", R"x({"env":[{"name":"Y","value":"$(X)"},{"name":"X","value":"1"}]})x",
       "Y", "$(X)"},
      {"env wins over envFrom",
       R"({"envFrom":[{"configMapRef":{"name":"map"}}],"env":[{"name":"A","value":"own"}]})", "A",
       "own"},
      {"envFrom takes a prefix", R"({"envFrom":[{"prefix":"P_","configMapRef":{"name":"map"}}]})",
       "P_B", "b"},
      {"a missing optional source is skipped",
       R"({"envFrom":[{"secretRef":{"name":"no","optional":true}}]})", "B", "(absent)"},
      {"a key of a secret is decoded",
       R"({"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"secret","key":"password"}}}]})",
       "X", "hunter2"},
      {"a missing optional key is skipped",
       R"({"env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"map","key":"no",
          "optional":true}}}]})",
       "X", "(absent)"},
      {"a label by its key",
       R"({"env":[{"name":"X","valueFrom":{"fieldRef":
          {"fieldPath":"metadata.labels['a.b/c']"}}}]})",
       "X", "label"},
      {"the address of the pod",
       R"({"env":[{"name":"X","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}]})", "X",
       "10.0.0.9"},
      {"a limit is rounded up to whole cores",
       R"({"resources":{"limits":{"cpu":"1500m"}},"env":[{"name":"X","valueFrom":
          {"resourceFieldRef":{"resource":"limits.cpu"}}}]})",
       "X", "2"},
      {"a divisor divides",
       R"({"resources":{"limits":{"memory":"1Gi"}},"env":[{"name":"X","valueFrom":
          {"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}}]})",
       "X", "1024"},
      {"without a limit it is the machine",
       R"({"env":[{"name":"X","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}]})", "X",
       "8"},
  };
  for (const EnvironmentCase& c : kCases) {
    SCOPED_TRACE(c.sentence);
    const Built built = build(c.container);
    EXPECT_EQ(built.error, "");
    EXPECT_EQ(built[c.name], c.value);
  }
}

TEST(Environment, SaysWhatIsMissing) {
  EXPECT_EQ(
      build(R"({"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"no","key":"k"}}}]})").error,
      "secret \"no\" not found");
  EXPECT_EQ(
      build(R"({"env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"map","key":"k"}}}]})")
          .error,
      "couldn't find key k in ConfigMap ns/map");
  EXPECT_EQ(build(R"({"envFrom":[{"configMapRef":{"name":"no"}}]})").error,
            "configmap \"no\" not found");
}

TEST(Expand, FollowsTheRulesOfKubernetes) {
  const Variables known = {{"A", "1"}};
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"$(A)", "1"},  {"$$(A)", "$(A)"}, {"$(B)", "$(B)"}, {"$A", "$A"},
      {"$(A", "$(A"}, {"a$", "a$"},      {"$$", "$"},      {"x$(A)$(A)y", "x11y"},
  };
  for (const auto& [text, expected] : kCases) EXPECT_EQ(expand(text, known), expected) << text;
}

// Each variable is the one before it twice: forty of them would fill the machine.
TEST(Environment, SmallBodiesKillTheServerByVariablesThatDouble) {
  std::string env = R"({"name":"V0","value":"0123456789abcdef0"})";
  for (int i = 1; i <= 40; ++i) {
    env += fmt::format(R"x(,{{"name":"V{0}","value":"$(V{1})$(V{1})"}})x", i, i - 1);
  }
  EXPECT_EQ(build(R"({"env":[)" + env + "]}").error,
            "\"$(V12)$(V12)\" expands to more than 131072 bytes, and a program can be started with "
            "no more in one argument or variable; refer to fewer variables, or use a volume for "
            "large values");
}

TEST(Environment, IsNoLargerThanAProgramCanBeStartedWith) {
  const std::string large(100'000, 'x');
  const auto several = [&](int count, std::string_view name) {
    std::string out;
    for (int i = 0; i < count; ++i) {
      out += fmt::format(R"({}{{"name":"{}","value":"{}"}})", i == 0 ? "" : ",",
                         fmt::format(fmt::runtime(name), i), large);
    }
    return R"({"env":[)" + out + "]}";
  };
  const std::string whole =
      "the environment of the container has more than 2097152 bytes, and a program can be started "
      "with no more; use volumes for large values, fewer envFrom, or enableServiceLinks: false "
      "where there are many services";
  EXPECT_EQ(build(several(20, "V{}")).error, "");
  EXPECT_EQ(build(several(30, "V{}")).error, whole);
  EXPECT_EQ(build(several(30, "SAME")).error, "") << "only the last one counts";
  EXPECT_EQ(build(several(300, "SAME")).error, whole) << "but not for ever";
  const std::string longer(140'000, 'x');
  EXPECT_EQ(build(R"({"env":[{"name":"A","value":")" + longer + R"("}]})").error.substr(0, 57),
            R"("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..." expands to )");
  const json::value container = parse(R"({"envFrom":[{"configMapRef":{"name":"m"}}]})");
  const auto built =
      build_environment({.pod = kPod,
                         .container = container,
                         .lookup = [&](SourceKind, std::string_view) -> Result<json::value> {
                           return json::object{{"data", {{"A", json::string(longer)}}}};
                         }});
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().message,
            "the variable \"A\" has 140003 bytes, and a program can be started with at most 131072 "
            "in one; use a volume for large values");
}

TEST(Environment, ReadsAConfigMapOnceForAllVariables) {
  std::string env;
  for (int i = 0; i < 1'000; ++i) {
    env += fmt::format(
        R"({}{{"name":"V{}","valueFrom":{{"configMapKeyRef":{{"name":"m","key":"k{}"}}}}}})",
        i == 0 ? "" : ",", i, i % 3);
  }
  const json::value container = parse(R"({"env":[)" + env + "]}");
  int lookups = 0;
  const auto built = build_environment(
      {.pod = kPod,
       .container = container,
       .lookup = [&](SourceKind, std::string_view) -> Result<json::value> {
         ++lookups;
         return parse(R"({"data":{"k0":"a","k1":"b"},"binaryData":{"k2":"Yw=="}})");
       }});
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(lookups, 1);
  EXPECT_EQ(built->back(), (std::pair<std::string, std::string>("V999", "a")));
  EXPECT_EQ((*built)[built->size() - 2].second, "c");
}

TEST(Expand, SmallBodiesKillTheServerByArgumentsThatGrow) {
  const Variables known = {{"A", std::string(100'000, 'x')}};
  EXPECT_FALSE(expand("$(A)$(A)", known));
  json::array args;
  for (int i = 0; i < 30; ++i) args.emplace_back("$(A)");
  const auto expanded = expand_all(args, known);
  ASSERT_FALSE(expanded);
  EXPECT_EQ(expanded.error().message,
            "command and args expand to more than 2097152 bytes, and a program can be started with "
            "no more; use a volume for large values");
  const json::value container = json::object{{"command", {"true"}}, {"args", args}};
  const auto refused = command_line(container, {}, known);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "CreateContainerConfigError");
}

// Each "$(" was searched for its end to the end of the text.
TEST(Expand, LooksForTheEndOfAReferenceOnlyWhereOneCanBe) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "$(";
  EXPECT_EQ(expand(text, {}), text);
  EXPECT_EQ(expand("$(A)" + text, {{"A", "1"}}), "1" + text);
}

TEST(Images, AreMatchedByPattern) {
  const struct {
    std::string_view pattern;
    std::string_view image;
    bool matches;
  } kCases[] = {
      {"gcr.io/p/*", "gcr.io/p/a/b:v1", true},
      {"gcr.io/p/*", "gcr.io/q/a", false},
      {"python", "python:3.11", true},
      {"python:3.11", "python:3.12", false},
      {"python", "python@sha256:0", true},
      {"host:5000/x", "host:5000/x:tag", true},
      {"host:5000/x", "host:5000/y", false},
      {"*", "anything", true},
      {"tf-?", "tf-1", true},
      {"a*b*c", "a-x-b-y-d", false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(image_matches(c.pattern, c.image), c.matches) << c.pattern << " " << c.image;
  }
}

Object mapping(std::string_view name, std::string_view spec) {
  return std::make_shared<const json::value>(
      json::object{{"metadata", {{"name", json::string(name)}}}, {"spec", parse(spec)}});
}

TEST(Images, TheMostSpecificMappingWins) {
  const std::vector<Object> mappings = {
      mapping("all", R"({"pattern":"*","host":true})"),
      mapping("some", R"({"pattern":"gcr.io/p/*","venv":"/v","entrypoint":["python3"],
                          "env":[{"name":"A","value":"1"}]})"),
      mapping("one", R"({"pattern":"gcr.io/p/x","rootfs":"/r"})"),
  };
  EXPECT_EQ(resolve_image("gcr.io/p/x:1", mappings, false)->rootfs, "/r");
  const auto some = resolve_image("gcr.io/p/y", mappings, false);
  EXPECT_EQ(some->venv, "/v");
  EXPECT_EQ(some->entrypoint, std::vector<std::string>{"python3"});
  EXPECT_TRUE(resolve_image("busybox", mappings, false)->host);
}

TEST(Images, AnUnmappedImageNamesTheRemedies) {
  const auto refused = resolve_image("x/y:1", {}, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "ErrImagePull");
  EXPECT_NE(refused.error().message.find("skiff image map x/y:1 --host"), std::string::npos);
  EXPECT_TRUE(resolve_image("x/y:1", {}, true));
}

TEST(CommandLine, CommandOverEntrypointAndArgsOverArgs) {
  const ResolvedImage image{.entrypoint = {"e"}, .args = {"d"}};
  const auto line = [&](std::string_view container) {
    return *command_line(parse(container), image, {{"A", "1"}});
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(line("{}"), (Words{"e", "d"}));
  EXPECT_EQ(line(R"({"args":["x"]})"), (Words{"e", "x"}));
  EXPECT_EQ(line(R"({"command":["c"]})"), (Words{"c"}));
  EXPECT_EQ(line(R"x({"command":["c"],"args":["$(A)"]})x"), (Words{"c", "1"}));
}

TEST(CommandLine, AHostImageWithoutACommandIsRefusedWithTheRemedy) {
  for (const char* container :
       {R"({"name":"m","image":"i"})", R"({"name":"m","image":"i","args":["--steps=1"]})"}) {
    const auto refused = command_line(parse(container), ResolvedImage{}, {});
    ASSERT_FALSE(refused) << container;
    EXPECT_EQ(refused.error().reason, "CreateContainerError");
    EXPECT_NE(refused.error().message.find("--entrypoint"), std::string::npos);
  }
}

Services service_object(const std::string& ns, std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return {{{ns, "my-db"}, std::make_shared<const json::value>(std::move(*parsed))}};
}

Services db_service(const std::string& ns, const std::string& address) {
  return service_object(
      ns, R"({"metadata":{"name":"my-db"},"spec":{"clusterIP":")" + address +
              R"(","ports":[{"port":80,"name":"web-1"},{"port":53,"protocol":"UDP"}]}})");
}

const json::value kPlainPod =
    *json::parse(R"({"metadata":{"name":"p","namespace":"ns"},"spec":{}})");

TEST(ServiceLinks, NameTheAddressAndEveryPortOfAService) {
  const Variables expected = {{"MY_DB_SERVICE_HOST", "10.96.0.7"},
                              {"MY_DB_SERVICE_PORT", "80"},
                              {"MY_DB_SERVICE_PORT_WEB_1", "80"},
                              {"MY_DB_PORT", "tcp://10.96.0.7:80"},
                              {"MY_DB_PORT_80_TCP", "tcp://10.96.0.7:80"},
                              {"MY_DB_PORT_80_TCP_PROTO", "tcp"},
                              {"MY_DB_PORT_80_TCP_PORT", "80"},
                              {"MY_DB_PORT_80_TCP_ADDR", "10.96.0.7"},
                              {"MY_DB_PORT_53_UDP", "udp://10.96.0.7:53"},
                              {"MY_DB_PORT_53_UDP_PROTO", "udp"},
                              {"MY_DB_PORT_53_UDP_PORT", "53"},
                              {"MY_DB_PORT_53_UDP_ADDR", "10.96.0.7"}};
  EXPECT_EQ(service_links(kPlainPod, db_service("ns", "10.96.0.7")), expected);
}

TEST(ServiceLinks, AreOfServicesOfThePodsNamespaceThatHaveAnAddress) {
  EXPECT_TRUE(service_links(kPlainPod, db_service("other", "10.96.0.7")).empty());
  EXPECT_TRUE(service_links(kPlainPod, db_service("ns", "None")).empty());
  EXPECT_TRUE(service_links(kPlainPod, db_service("ns", "")).empty());
  EXPECT_TRUE(service_links(kPlainPod, service_object("ns", R"({"metadata":{"name":"my-db"},
      "spec":{"type":"ExternalName","externalName":"b.example"}})"))
                  .empty());
}

TEST(ServiceLinks, AreLeftOutWhereThePodSaysSo) {
  const json::value pod = *json::parse(
      R"({"metadata":{"name":"p","namespace":"ns"},"spec":{"enableServiceLinks":false}})");
  EXPECT_TRUE(service_links(pod, db_service("ns", "10.96.0.7")).empty());
}

Services api_service(const std::string& ns) {
  auto parsed = json::parse(R"({"metadata":{"name":"kubernetes"},"spec":{"clusterIP":"10.96.0.1",
      "ports":[{"port":443,"name":"https"}]}})");
  EXPECT_TRUE(parsed);
  return {{{ns, "kubernetes"}, std::make_shared<const json::value>(std::move(*parsed))}};
}

TEST(ServiceLinks, OfTheApiAreNotGiven) {
  const json::value pod =
      *json::parse(R"({"metadata":{"name":"p","namespace":"default"},"spec":{}})");
  EXPECT_TRUE(service_links(pod, api_service("default")).empty());
  EXPECT_FALSE(service_links(kPlainPod, api_service("ns")).empty())
      << "somebody's own of that name is a service like others";
}

}  // namespace
}  // namespace skiff::node
