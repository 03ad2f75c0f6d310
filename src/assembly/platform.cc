#include "assembly/platform.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>

#include "api/builtin.h"
#include "api/meta.h"
#include "api/metrics/metrics.h"
#include "apiserver/admission/service_addresses.h"
#include "assembly/address.h"
#include "assembly/log.h"
#include "base/check.h"
#include "base/strings.h"
#include "env/posix/entropy.h"
#include "features/nodes/feature.h"
#include "features/storage/feature.h"
#include "net/socket_owner.h"
#include "node/loopback/table.h"
#include "node/net/addresses.h"
#include "node/net/pod_network.h"
#include "node/node_object.h"
#include "node/process/untrusted.h"
#include "node/rootless/rootless.h"
#include "node/shutdown.h"
#include "node/streams/pod_logs.h"
#include "scheduler/controller.h"
#include "webui/status_page.h"

extern char** environ;

namespace skiff::assembly {
namespace {

using namespace std::chrono_literals;

// Pods are bound to the name, so it outlives a change of the machine's.
std::string node_name(const DataFolder& folder) {
  const std::string path = folder.at("node-name");
  const std::string kept(trim(read_file(path).value_or("")));
  if (!kept.empty()) return node::valid_node_name(kept);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::string name = node::valid_node_name(host);
  if (auto written = write_file(path, name, 0600); !written) log_line(written.error().message);
  return name;
}

node::Variables machine_environment() {
  node::Variables out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos)
      out.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return out;
}

// Two Skiffs on one machine must not share a bridge or a subnet. Each keeps what it chose first;
// who chose the same while its bridge was gone has it.
Result<std::string> own_subnet(const DataFolder& folder, const std::string& bridge) {
  const std::string kept(trim(read_file(folder.at("subnet")).value_or("")));
  std::error_code ignored;
  if (!kept.empty() && std::filesystem::exists("/sys/class/net/" + bridge, ignored)) return kept;
  std::vector<std::string> preferred = node::default_subnets();
  if (!kept.empty()) preferred.insert(preferred.begin(), kept);
  SKIFF_ASSIGN(std::string subnet, node::take_subnet(preferred, bridge));
  if (auto written = write_file(folder.at("subnet"), subnet, 0600); !written) {
    log_line(written.error().message);
  }
  return subnet;
}

node::ProcessOptions process_options(const DataFolder& folder) {
  const std::string hash = net::sha256_hex(folder.path()).substr(0, 6);
  mkdir(folder.at("pods").c_str(), 0700);
  node::ProcessOptions out{.pods_folder = folder.at("pods"),
                           .skiff_binary = std::filesystem::canonical("/proc/self/exe"),
                           .bridge = "skiff" + hash,
                           .services = std::string(apiserver::kServiceRange),
                           .privileged = geteuid() == 0,
                           .tell = [](std::string line) { log_line(line); }};
  if (!out.privileged) {
    out.led_table = folder.at("led.txt");
    return out;
  }
  out.claim = std::make_shared<const Fd>(node::claim_bridge(out.bridge));
  const Result<std::string> subnet = own_subnet(folder, out.bridge);
  if (!subnet) {
    log_line("pods share this machine's network: " + subnet.error().message);
    return out;
  }
  out.subnet = *subnet;
  out.gateway = node::first_address(out.subnet).value_or("");
  return out;
}

client::Write metrics_reader() {
  return {.resource = {"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false},
          .body = api::metrics_reader_role()};
}

void stop_pods(node::Runtime& runtime, const env::Clock& clock,
               std::map<std::string, Duration, std::less<>> graces) {
  node::stop_all_pods(runtime, {.graces = std::move(graces),
                                .elapsed = [&clock] { return clock.elapsed(); },
                                .sleep = [](Duration wait) { std::this_thread::sleep_for(wait); }});
}

}  // namespace

Result<void> clean_up(const std::string& data) {
  if (needs_sweep(data)) return sweep(data);
  SKIFF_ASSIGN(const DataFolder folder, DataFolder::open(data));
  node::end_rootless_rest(folder.path());
  return clean_up_in(folder);
}

Result<void> clean_up_in(const DataFolder& folder) {
  const node::ProcessOptions options = process_options(folder);
  const std::unique_ptr<node::Runtime> runtime = node::make_process_runtime(options);
  stop_pods(*runtime, env::posix::Clock(), {});
  if (!options.privileged) return {};
  return node::release_network(options);
}

Platform::Platform(DataFolder folder, cli::UpOptions options, const Outside& outside)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      outside_(outside),
      started_at_(clock_.now()),
      started_(clock_.elapsed()),
      registry_(api::builtin_definitions()),
      features_(all_features(registry_)) {}

Platform::~Platform() { stop(true); }

Result<std::unique_ptr<Platform>> Platform::start(const cli::UpOptions& options,
                                                  AskToStop ask_to_stop, Outside& outside) {
  SKIFF_ASSIGN(const Address http, parse_address("--http", options.http));
  if (!loopback(http.host)) {
    return fail(Code::kBadRequest,
                fmt::format("--http {}: plain HTTP is for this machine only; use a loopback "
                            "address here and --https for the network",
                            options.http));
  }
  SKIFF_ASSIGN(DataFolder folder, DataFolder::open(options.data));
  // Before the first thread.
  SKIFF_TRY(move_inside(folder, options, outside));
  std::unique_ptr<Platform> platform(new Platform(std::move(folder), options, outside));
  SKIFF_TRY(platform->open_store());
  if (!options.api_only) platform->choose_network();
  SKIFF_TRY(platform->load_credentials());
  platform->make_server(std::move(ask_to_stop));
  SKIFF_TRY(platform->server_->bootstrap());
  platform->start_control();
  if (!options.api_only) platform->start_node();
  SKIFF_TRY(platform->listen());
  return platform;
}

Result<void> Platform::open_store() {
  if (auto restored = take_staged(folder_, clock_.now())) {
    restored_ = std::move(*restored);
    if (restored_) log_line("restored the backup of " + restored_->taken_at);
  } else {
    restore_refused_ = restored.error().message;
    log_line("nothing was restored: " + restore_refused_);
  }
  SKIFF_ASSIGN(auto journal, store::open_sqlite_journal(folder_.at("objects.db")));
  SKIFF_ASSIGN(store_, store::Store::open(std::move(journal), store::Store::Writer::kThread));
  return {};
}

Result<void> Platform::load_credentials() {
  SKIFF_ASSIGN(const Address https, parse_address("--https", options_.https));
  std::vector<std::string> names = {https.host};
  if (!process_.gateway.empty()) {
    names.push_back(process_.gateway);
    names.emplace_back(apiserver::kFirstServiceAddress);
  }
  std::erase_if(names, [](const std::string& name) { return name == "0.0.0.0" || name == "::"; });
  SKIFF_ASSIGN(credentials_, load_or_make_credentials(folder_, names, clock_.now()));
  return {};
}

void Platform::make_server(AskToStop ask_to_stop) {
  env::posix::Entropy entropy;
  SKIFF_CHECK(store_ != nullptr, "the store is opened first");
  // Port 0 lets the machine choose, later than the service is written.
  const int asked = parse_address("--https", options_.https).value_or(Address{}).port;
  const int api_port = asked != 0 ? asked : apiserver::ServerOptions{}.api_port;
  std::vector<api::Kind> kinds = features_.kinds;
  if (!options_.api_only) {
    kinds.push_back(api::node_metrics_kind());
    kinds.push_back(api::pod_metrics_kind());
    for (auto& [name, schema] : api::metrics_schemas()) registry_.add(name, std::move(schema));
  }
  server_ = std::make_unique<apiserver::Server>(
      *store_, std::move(kinds), registry_, clock_, entropy.seed(),
      apiserver::ServerOptions{
          .version = kVersion,
          .auth = {.admin_token = credentials_.token, .local_trust = options_.local_trust},
          .tokens = {.codec = token_codec(credentials_.token_keys)},
          .authority = credentials_.authority.certificate_pem,
          .api_port = api_port});
  page_client_ = std::make_unique<client::LocalClient>(
      *server_, [this](auto fn) { loop_.post(std::move(fn)); });
  if (!options_.api_only) server_->set_metrics([this] { return metrics_.text(); });
  server_->add_route({.method = "GET", .prefix = "/", .handler = [this](const http::Request&) {
                        return webui::status_page(*page_client_, features_.job_kinds, kVersion,
                                                  clock_.now());
                      }});
  server_->add_route({.method = "GET",
                      .prefix = "/skiff/v1/status",
                      .handler = [this](const http::Request&) { return status_json(); }});
  server_->add_route(
      {.method = "GET", .prefix = "/skiff/v1/backup", .handler = [this](const http::Request&) {
         return backups_.answer(*store_, clock_.now());
       }});
  server_->add_route({.method = "POST",
                      .prefix = "/skiff/v1/stop",
                      .handler = [ask_to_stop](const http::Request& request) {
                        const auto parsed = http::parse_url(request.target);
                        ask_to_stop(parsed && parsed->flag("keepPods"),
                                    parsed && parsed->flag("startAgain"));
                        return http::Response{.headers = {{"Content-Type", "application/json"}},
                                              .body = R"({"status":"stopping"})"};
                      }});
}

http::Response Platform::status_json() {
  const store::Store::Stats stats = store_->stats();
  json::object out = {{"version", kVersion},     {"api", api_url_},
                      {"page", page_url_},       {"data", folder_.path()},
                      {"pid", getpid()},         {"uptime", age(clock_.elapsed() - started_)},
                      {"stored", stats.objects}, {"revision", store_->revision()}};
  if (!stats.refusing.empty()) out["refusing"] = stats.refusing;
  if (restored_) out["restored"] = restored_->taken_at;
  if (restored_ && !restored_->kept.empty()) out["before-restore"] = restored_->kept;
  if (!restore_refused_.empty()) out["restore-refused"] = restore_refused_;
  return {.headers = {{"Content-Type", "application/json"}}, .body = json::serialize(out)};
}

std::string Platform::volumes_folder() const { return folder_.path() + "/volumes"; }

void Platform::start_control() {
  control_client_ = std::make_unique<client::LocalClient>(
      *server_, [this](auto fn) { loop_.post(std::move(fn)); },
      [this](auto fn) { writer_.post(std::move(fn)); });
  writer_.start([] { return Duration(1h); });
  planner_.start([] { return Duration(1h); });
  control_ = std::make_unique<control::Runtime>(
      *control_client_, clock_,
      control::RuntimeOptions{
          .wake = [this] { loop_.wake(); }, .log = log_line, .elsewhere = aside(planner_, loop_)});
  if (!options_.api_only) {
    for (const auto* controllers : {&features_.controllers, &features_.embedded_controllers}) {
      for (const control::Controller& controller : *controllers) {
        control_->add(metrics_.metered(controller));
      }
    }
    control_->add(storage::make({.folder = volumes_folder()}));
    control_->add(nodes::make());
    control_->add(scheduler::make_scheduler());
    control_->add(metrics_.counter());
    // What a user changed stays as it is.
    std::vector<client::Write> objects = features_.objects;
    objects.push_back(storage::default_class());
    objects.push_back(metrics_reader());
    for (const client::Write& write : objects) {
      const auto made = control_client_->write(write);
      if (made || made.error().code == Code::kAlreadyExists) continue;
      log_line(fmt::format("there is no {}: {}", write.resource.kind, made.error().message));
    }
  }
  upkeep_ = std::make_unique<Upkeep>(
      *store_, clock_, [this] { return server_->collect_garbage(); }, [this] { server_->tick(); });
  loop_.start([this] { return control_->pump(); });
}

void Platform::choose_network() { process_ = process_options(folder_); }

// For a projected volume: it ends with the pod.
Result<std::string> Platform::pod_token(const node::TokenWish& wish) {
  std::vector<std::string> audiences;
  if (!wish.audience.empty()) audiences.push_back(wish.audience);
  SKIFF_ASSIGN(
      apiserver::MintedToken minted,
      server_->access().tokens().mint(
          {.ns = wish.ns,
           .account = wish.account,
           .audiences = std::move(audiences),
           .seconds = wish.seconds,
           .bound = apiserver::TokenWish::Bound{
               .api_version = "v1", .kind = "Pod", .name = wish.pod, .uid = wish.pod_uid}}));
  return std::move(minted.token);
}

// Only root can lay layers over one another; others have mapped images.
void Platform::open_images() {
  if (!process_.privileged) return;
  auto images = image::Images::open(folder_.at("images"));
  if (!images) return log_line("images cannot be used: " + images.error().message);
  images_ = std::move(*images);
  // What a Skiff that was killed left half done.
  if (const auto done = images_->store().collect(); !done) log_line(done.error().message);
}

// Most machines have none, which is nothing to tell; that a driver does not work is.
std::vector<node::Gpu> Platform::find_gpus() {
  const char* given = std::getenv("SKIFF_NVML");
  auto nvml = node::Nvml::open(given != nullptr ? given : node::Nvml::kLibrary);
  if (!nvml) {
    if (given != nullptr || nvml.error().code != Code::kNotFound) {
      log_line("no GPUs can be used: " + nvml.error().message);
    }
    return {};
  }
  auto gpus = (*nvml)->gpus();
  if (!gpus) log_line("no GPUs can be used: " + gpus.error().message);
  if (!gpus || gpus->empty()) return {};
  nvml_ = std::move(*nvml);
  log_line(fmt::format("GPUs: {} ({})", gpus->size(), gpus->front().name));
  return std::move(*gpus);
}

Result<void> Platform::start_names(const std::string& address, std::uint16_t port) {
  const std::string resolv_conf = read_file("/etc/resolv.conf").value_or("");
  SKIFF_ASSIGN(dns_,
               node::DnsServer::start({.address = address,
                                       .port = port,
                                       .upstreams = node::parse_upstreams(resolv_conf, address),
                                       .records = [names = named_] {
                                         const node::Agent* agent = names->load();
                                         return agent != nullptr
                                                    ? agent->dns_records()
                                                    : std::make_shared<const node::DnsRecords>();
                                       }}));
  return {};
}

// Programs that run since before may know the port of before.
void Platform::start_led_names() {
  const auto before = node::read_table(read_file(process_.led_table).value_or("")).names_port;
  if (!start_names("127.0.0.1", before)) {
    if (const auto any = start_names("127.0.0.1", 0); !any) return log_line(any.error().message);
  }
  process_.names_port = dns_->port();
}

void Platform::start_node() {
  // Pods are told of a name server only where one answers, so it comes before the agent, whose
  // names it is to serve.
  named_ = std::make_shared<std::atomic<const node::Agent*>>(nullptr);
  if (!process_.privileged) start_led_names();
  runtime_ = node::make_process_runtime(process_);
  // The runtime has told why there is no bridge; without it nobody can be at its address.
  if (!node::is_own_address(process_.gateway)) process_.gateway.clear();
  if (!process_.gateway.empty()) {
    if (const auto dns = start_names(process_.gateway, 53); !dns) {
      log_line("pods find names by /etc/hosts only: " + dns.error().message);
    }
  }
  node_client_ = std::make_unique<client::LocalClient>(
      *server_, [this](auto fn) { loop_.post(std::move(fn)); });
  open_images();
  std::map<std::string, std::string> capacity;
  for (const auto& [name, n] : options_.capacity) capacity[name] = std::to_string(n);
  agent_ = std::make_unique<node::Agent>(
      *node_client_, *runtime_, clock_,
      node::AgentOptions{.node_name = node_name(folder_),
                         .node_address = process_.gateway.empty() ? "127.0.0.1" : process_.gateway,
                         .version = kVersion,
                         .pod_cidr = process_.gateway.empty() ? "" : process_.subnet,
                         .images_host = options_.images_host,
                         .images = images_.get(),
                         .capacity = capacity,
                         .gpus = find_gpus(),
                         .gpu_loads = [this]() -> Result<std::vector<node::GpuLoad>> {
                           if (!nvml_) return std::vector<node::GpuLoad>();
                           return nvml_->loads();
                         },
                         .hidden = {folder_.path()},
                         .remote_shell = process_.skiff_binary,
                         .volumes_folder = volumes_folder(),
                         .dns_address = !dns_                      ? ""
                                        : process_.gateway.empty() ? "127.0.0.1"
                                                                   : process_.gateway,
                         .machine_env = machine_environment(),
                         .tokens = [this](const node::TokenWish& wish) { return pod_token(wish); },
                         .log = [](std::string line) { log_line(line); }});
  named_->store(agent_.get());
  pod_streams_ = std::make_unique<node::PodLogs>(
      *runtime_, [this](std::string_view pod, std::string_view container, int attempt) {
        return agent_->running(pod, container, attempt);
      });
  server_->set_pod_streams(pod_streams_.get());
  server_->set_usage([this] { return agent_->usage(); });
}

Result<void> Platform::listen() {
  SKIFF_ASSIGN(const Address https, parse_address("--https", options_.https));
  SKIFF_ASSIGN(const Address http, parse_address("--http", options_.http));
  SKIFF_ASSIGN(
      http_,
      net::Server::start(
          {.listeners =
               {{.address = https.host, .port = https.port, .tls = true, .socket = outside_.https},
                {.address = http.host,
                 .port = http.port,
                 .trust_local = options_.local_trust,
                 .socket = outside_.http}},
           .certificate_pem = credentials_.server.certificate_pem,
           .key_pem = credentials_.server.key_pem,
           .client_ca_pem = credentials_.authority.certificate_pem,
           .gate =
               [this](std::uint64_t revision, std::function<void()> ready,
                      store::Store::Refused refused) {
                 store_->when_visible(revision, std::move(ready), std::move(refused));
               },
           .server_header = "skiff",
           .owners = outside_.owners ? outside_.owners
                                     : std::make_shared<net::SocketOwners>(node::is_untrusted)},
          [this](const http::Request& request) { return server_->handle(request); }));
  api_url_ = url("https", https.host, http_->port(0));
  page_url_ = url("http", http.host, http_->port(1));
  SKIFF_TRY(write_file(folder_.at("kubeconfig"), kubeconfig_text(credentials_, api_url_), 0600));
  SKIFF_TRY(write_file(folder_.at("address"), page_url_ + "\n", 0600));
  if (!process_.gateway.empty()) {
    // For pods; only tokens and certificates count there.
    for (const bool tls : {true, false}) {
      const auto added = http_->add_listener(
          {.address = process_.gateway, .port = http_->port(tls ? 0 : 1), .tls = tls});
      if (!added) log_line(added.error().message);
    }
  }
  if (agent_) {
    const std::string& host = process_.gateway.empty() ? https.host : process_.gateway;
    agent_->start({.host = host, .port = http_->port(0)});
  }
  return {};
}

std::string Platform::summary() const {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.elapsed() - started_).count();
  return fmt::format(
      "Skiff is ready ({} ms): API {}, page {}, data {}; point kubectl here: eval \"$(skiff "
      "env{})\"",
      ms, api_url_, page_url_, folder_.path(), " --data " + folder_.path());
}

std::map<std::string, Duration, std::less<>> Platform::graces() {
  static const api::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod"};
  std::map<std::string, Duration, std::less<>> out;
  if (const auto pods = page_client_->list(kPods, "", {})) {
    for (const Object& pod : pods->items) {
      const auto grace =
          json::get_int(*pod, {"spec", "terminationGracePeriodSeconds"}).value_or(30);
      out[std::string(api::uid(*pod))] = std::chrono::seconds(grace);
    }
  }
  return out;
}

void Platform::stop(bool keep_pods) {
  if (std::exchange(stopped_, true)) return;
  if (agent_) agent_->stop();
  if (runtime_ && !keep_pods) stop_pods(*runtime_, clock_, graces());
  http_.reset();
  dns_.reset();
  upkeep_.reset();
  writer_.stop();
  planner_.stop();
  loop_.stop();
  control_.reset();
  agent_.reset();
  images_.reset();
  runtime_.reset();
  if (!keep_pods && process_.privileged) {
    if (auto released = node::release_network(process_); !released)
      log_line(released.error().message);
    if (outside_.entered) node::end_rootless(folder_.path());
  }
  server_.reset();
  store_.reset();
}

}  // namespace skiff::assembly
