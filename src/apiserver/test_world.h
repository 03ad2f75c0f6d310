// A server on a simulated disk with virtual time, for the tests of this folder and of its clients.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/builtin.h"
#include "api/kinds.h"
#include "apiserver/server.h"
#include "env/sim/clock.h"
#include "schema/registry.h"
#include "store/memory_journal.h"

namespace skiff::apiserver {

class World {
 public:
  explicit World(ServerOptions options = {}, std::vector<api::Kind> kinds = api::builtin_kinds()) {
    auto opened =
        store::Store::open(store::open_memory_journal(disk), store::Store::Writer::kManual);
    EXPECT_TRUE(opened);
    store = std::move(*opened);
    options.auth.admin_token = "secret";
    server =
        std::make_unique<Server>(*store, std::move(kinds), registry, clock, 7, std::move(options));
    const auto ready = server->bootstrap();
    EXPECT_TRUE(ready) << ready.error().message;
    flush();
  }

  void flush() { EXPECT_TRUE(store->flush()); }

  // The same disk under a new store and server: the history of events is gone.
  void restart() {
    flush();
    server.reset();
    store.reset();
    auto opened =
        store::Store::open(store::open_memory_journal(disk), store::Store::Writer::kManual);
    EXPECT_TRUE(opened);
    store = std::move(*opened);
    ServerOptions options;
    options.auth.admin_token = "secret";
    server = std::make_unique<Server>(*store, api::builtin_kinds(), registry, clock, 8,
                                      std::move(options));
    EXPECT_TRUE(server->bootstrap());
    flush();
  }

  http::Request request(std::string method, std::string target, std::string body = {},
                        std::string type = "application/json", std::string accept = {}) const {
    http::Request out{
        .method = std::move(method), .target = std::move(target), .body = std::move(body)};
    out.headers = {{"Authorization", "Bearer secret"}, {"Host", "localhost:7420"}};
    out.headers.emplace_back("Content-Type", std::move(type));
    if (!accept.empty()) out.headers.emplace_back("Accept", std::move(accept));
    return out;
  }

  // The answer as a client sees it: after what it depends on is on disk.
  std::pair<int, json::value> call(std::string method, std::string target, std::string body = {},
                                   std::string type = "application/json", std::string accept = {}) {
    last = server->handle(request(std::move(method), std::move(target), std::move(body),
                                  std::move(type), std::move(accept)));
    flush();
    EXPECT_LE(last.after_revision, store->visible());
    if (last.body.empty()) return {last.status, nullptr};
    auto parsed = json::parse(last.body);
    return {last.status, parsed ? *parsed : json::value(json::string(last.body))};
  }

  void collect() {
    for (int pass = 0; pass < 100; ++pass) {
      if (!server->collect_garbage()) return flush();
    }
    ADD_FAILURE() << "the garbage collector finds work for ever";
  }

  std::string pod(std::string_view name, std::string_view more_metadata = "") const {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + std::string(name) + "\"" +
           std::string(more_metadata) +
           R"(},"spec":{"containers":[{"name":"c","image":"x:y","command":["true"]}]}})";
  }
  static std::string pods(std::string_view rest = "") {
    return "/api/v1/namespaces/default/pods" + std::string(rest);
  }

  std::shared_ptr<store::MemoryDisk> disk = std::make_shared<store::MemoryDisk>();
  env::sim::Clock clock;
  schema::Registry registry{api::builtin_definitions()};
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Server> server;
  http::Response last;
};

// A custom kind as users declare one.
inline constexpr std::string_view kBoats = R"({
  "apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
  "metadata":{"name":"boats.sea.example.org"},
  "spec":{"group":"sea.example.org","scope":"Namespaced",
    "names":{"plural":"boats","singular":"boat","kind":"Boat","shortNames":["bt"]},
    "versions":[{"name":"v1","served":true,"storage":true,
      "additionalPrinterColumns":[{"name":"Crew","type":"integer","jsonPath":".spec.crew"}],
      "subresources":{"status":{}},
      "schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","required":["crew"],"properties":{
          "crew":{"type":"integer","minimum":1},"sail":{"type":"string","default":"lug"}}},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})";

}  // namespace skiff::apiserver
