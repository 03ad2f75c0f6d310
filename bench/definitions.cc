#include "bench/definitions.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/load.h"
#include "bench/report.h"
#include "bench/server.h"

namespace skiff::bench {
namespace {

constexpr int kLarge = 90;
constexpr std::string_view kDefinitionsPath =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

struct NewKind {
  std::string plural = {};
  std::string kind = {};
  std::string group = {};
  int parts = 1;
  int fields_each = 1;
};

// Twenty parts of twenty fields are about as large as what real operators bring.
std::string definition_text(const NewKind& wanted) {
  std::string parts;
  for (int part = 0; part < wanted.parts; ++part) {
    std::string fields;
    for (int field = 0; field < wanted.fields_each; ++field) {
      fields += fmt::format(
          R"({}"field{}":{{"type":"string","description":"What this field of the part is for.",)"
          R"("maxLength":200}})",
          fields.empty() ? "" : ",", field);
    }
    parts += fmt::format(R"({}"part{}":{{"type":"object","properties":{{{}}}}})",
                         parts.empty() ? "" : ",", part, fields);
  }
  return fmt::format(
      R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{)"
      R"("name":"{0}.{2}"}},"spec":{{"group":"{2}","scope":"Namespaced","names":{{"plural":"{0}",)"
      R"("kind":"{1}"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{)"
      R"("openAPIV3Schema":{{"type":"object","properties":{{"spec":{{"type":"object",)"
      R"("properties":{{{3}}}}}}}}}}}}}]}}}})",
      wanted.plural, wanted.kind, wanted.group, parts);
}

NewKind small(int number) {
  return {.plural = fmt::format("smalls{}", number),
          .kind = fmt::format("Small{}", number),
          .group = fmt::format("small{}.example.org", number)};
}

// Milliseconds from the create until the kind answers.
double create_ms(Connection& c, const NewKind& wanted) {
  const std::string text = definition_text(wanted);
  const std::string path = fmt::format("/apis/{}/v1/{}", wanted.group, wanted.plural);
  const auto start = Clock::now();
  const auto answer = c.request("POST", std::string(kDefinitionsPath), text);
  if (answer.status != 201) {
    fmt::print(stderr, "bench: definition answered {}: {}\n", answer.status, answer.body);
    std::exit(1);
  }
  while (c.request("GET", path).status != 200) {
  }
  return ms_since(start);
}

// CPU of the server in milliseconds while some small ones are made, with what follows from it.
double create_cpu_ms(const Server& server, Connection& c, int from, int count) {
  const double before = exact_cpu_seconds(server.pid());
  for (int i = 0; i < count; ++i) create_ms(c, small(from + i));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return (exact_cpu_seconds(server.pid()) - before) * 1000;
}

}  // namespace

void definitions(const std::string& binary, const std::string& data) {
  std::filesystem::remove_all(data);
  Server server(binary, data);
  server.start();
  Connection c(kHttp);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  std::vector<double> first, beside;
  for (int i = 0; i < 5; ++i) first.push_back(create_ms(c, small(i)));
  const double cpu_before = create_cpu_ms(server, c, 100, 3);
  for (int i = 0; i < kLarge; ++i) {
    create_ms(c, {.plural = fmt::format("larges{}", i),
                  .kind = fmt::format("Large{}", i),
                  .group = fmt::format("large{}.example.org", i / 3),
                  .parts = 20,
                  .fields_each = 20});
  }
  for (int i = 0; i < 5; ++i) beside.push_back(create_ms(c, small(200 + i)));
  const double ratio = median(beside) / median(first);
  add("one of the first CRDs until it is served (median of 5)",
      fmt::format("{:.1f} ms", median(first)));
  add("a CRD beside ninety others costs N x the first",
      fmt::format("{:.1f} x, {:.1f} ms", ratio, median(beside)), "3 x or 30 ms",
      ratio <= 3 || median(beside) <= 30);
  const double cpu = create_cpu_ms(server, c, 300, 3);
  add("three small CRDs beside ninety others, CPU of the server", fmt::format("{:.0f} ms", cpu),
      fmt::format("300 ms ({:.0f} without)", cpu_before), cpu <= 300);
}

}  // namespace skiff::bench
