#include "assembly/cluster.h"

#include <fmt/format.h>

#include <thread>

#include "api/apiextensions/definition.h"
#include "api/builtin.h"
#include "api/meta.h"
#include "assembly/address.h"
#include "assembly/log.h"

namespace skiff::assembly {
namespace {

using namespace std::chrono_literals;

const api::Resource kDefinitions{.group = "apiextensions.k8s.io",
                                 .version = "v1",
                                 .plural = "customresourcedefinitions",
                                 .kind = "CustomResourceDefinition",
                                 .namespaced = false};
constexpr int kEstablishTries = 200;
constexpr auto kEstablishWait = 50ms;
// A job of many pods changes with each of them, and a status costs the server what a pod does.
constexpr Duration kRest = 100ms;
// Each answer and each event of a watch wakes the loop; those of a moment are one turn.
constexpr Duration kGather = 10ms;

http::Response text(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(body)};
}

}  // namespace

Cluster::Cluster(DataFolder folder, const cli::UpOptions& options)
    : folder_(std::move(folder)),
      options_(options),
      registry_(api::builtin_definitions()),
      features_(all_features(registry_)) {}

Cluster::~Cluster() {
  http_.reset();
  loop_.stop();
  control_.reset();
  client_.reset();
}

Result<std::unique_ptr<Cluster>> Cluster::start(const cli::UpOptions& options) {
  SKIFF_ASSIGN(DataFolder folder, DataFolder::open(options.data));
  std::unique_ptr<Cluster> cluster(new Cluster(std::move(folder), options));
  SKIFF_TRY(cluster->connect());
  SKIFF_TRY(cluster->install_definitions());
  cluster->start_control();
  SKIFF_TRY(cluster->listen());
  return cluster;
}

Result<void> Cluster::connect() {
  SKIFF_ASSIGN(client::Access access, client::load_kubeconfig(options_.kubeconfig));
  client_ = std::make_unique<client::RemoteClient>(std::move(access),
                                                   [this](auto fn) { loop_.post(std::move(fn)); });
  return {};
}

Result<void> Cluster::install_definitions() {
  for (const api::Kind& kind : features_.custom_kinds) {
    // Older versions are views that only our own server can convert.
    if (kind.to_storage != nullptr) continue;
    SKIFF_TRY(install(api::definition_of(kind, registry_)));
  }
  return {};
}

// Creates the definition or brings it up to date, and waits until the server serves the kind.
Result<void> Cluster::install(const json::value& definition) {
  const std::string name(api::name(definition));
  const auto found = client_->get(kDefinitions, "", name);
  if (!found && found.error().code != Code::kNotFound) return std::unexpected(found.error());
  const json::value spec = *json::find(definition, {"spec"});
  const auto written =
      client_->write(found ? client::Write{.verb = client::Verb::kMergePatch,
                                           .resource = kDefinitions,
                                           .name = name,
                                           .body = json::object{{"spec", spec}}}
                           : client::Write{.resource = kDefinitions, .body = definition});
  if (!written) return std::unexpected(written.error());
  for (int i = 0; i < kEstablishTries; ++i) {
    SKIFF_ASSIGN(const json::value now, client_->get(kDefinitions, "", name));
    if (api::condition_true(now, "Established")) return {};
    std::this_thread::sleep_for(kEstablishWait);
  }
  return fail(Code::kTimeout, fmt::format("the server does not establish {}: see `kubectl describe "
                                          "crd {}`",
                                          name, name));
}

void Cluster::start_control() {
  for (const client::Write& write : features_.objects) {
    const auto made = client_->write(write);
    if (made || made.error().code == Code::kAlreadyExists) continue;
    log_line(fmt::format("there is no {}: {}", write.resource.kind, made.error().message));
  }
  control_ = std::make_unique<control::Runtime>(
      *client_, clock_,
      control::RuntimeOptions{.wake = [this] { loop_.wake(); }, .log = log_line, .rest = kRest});
  for (const control::Controller& controller : features_.controllers) {
    control_->add(metrics_.metered(controller));
  }
  control_->add(metrics_.counter());
  loop_.start([this, more = false]() mutable {
    if (!more) std::this_thread::sleep_for(kGather);
    const Duration wait = control_->pump();
    more = wait == Duration{0};
    return wait;
  });
}

// Health and metrics, for whoever watches over us; `skiff down` sends a signal.
Result<void> Cluster::listen() {
  SKIFF_ASSIGN(const Address http, parse_address("--http", options_.http));
  const auto handle = [this](const http::Request& request) {
    const auto url = http::parse_url(request.target);
    const std::string path = url ? url->path : "";
    if (path == "/healthz" || path == "/livez" || path == "/readyz") return text(200, "ok");
    if (path == "/metrics") {
      http::Response response = text(200, metrics_.text());
      response.headers[0].second = "text/plain; version=0.0.4; charset=utf-8";
      return response;
    }
    return text(404, "this Skiff runs controllers only; the API is the cluster's\n");
  };
  SKIFF_ASSIGN(http_, net::Server::start({.listeners = {{.address = http.host, .port = http.port}},
                                          .server_header = "skiff"},
                                         handle));
  return {};
}

std::string Cluster::summary() const {
  return fmt::format("Skiff's controllers are ready: cluster {}:{}, data {}",
                     client_->access().endpoint.host, client_->access().endpoint.port,
                     folder_.path());
}

}  // namespace skiff::assembly
