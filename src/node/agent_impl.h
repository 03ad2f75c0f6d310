// The inside of Agent, shared by agent.cc (threads, node, names), agent_pods.cc (pods) and others.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "node/agent.h"
#include "node/agent_pod.h"
#include "node/container_setup.h"
#include "node/health/crew.h"
#include "node/health/hook.h"
#include "node/health/probe.h"
#include "node/image_fetch.h"
#include "node/mailbox.h"
#include "node/mirror.h"
#include "node/node_object.h"
#include "node/pod_events.h"
#include "node/pod_plan.h"
#include "node/progress/progress_desk.h"
#include "node/token_cache.h"
#include "node/usage/meter.h"

namespace skiff::node {

// What a volume whose claim is gone has before it: its folder removed, or only its object let go.
enum class Afterlife { kNone, kLetGo, kRemove };
Afterlife afterlife(const json::value& volume, const std::string& volumes_folder);
// Where a source is found in the API.
api::Resource source_resource(SourceKind kind);

class Agent::Impl : public std::enable_shared_from_this<Agent::Impl> {
 public:
  Impl(client::Client& client, Runtime& runtime, const env::Clock& clock, AgentOptions options);

  void start(ApiAddress api);
  void stop();
  std::shared_ptr<const DnsRecords> dns_records() const;
  bool running(std::string_view pod_uid, std::string_view container, int attempt) const;
  apiserver::Usage usage();

 private:
  using Pod = AgentPod;
  // What a worker found, to be applied on the agent's thread.
  using Outcome = std::function<void(Impl&, Pod&)>;

  // agent.cc
  void post(std::function<void(Impl&)> work);
  void post_after(Duration wait, std::function<void(Impl&)> work);
  void begin();
  void poll_soon();  // from any thread
  void poll_all();
  bool poll(Mirror& mirror, const std::function<void(const client::Event&)>& changed);
  void heartbeat();
  void register_node();
  void renew_lease();
  void names_changed();
  void rebuild_names();
  void log(std::string text) const;
  // agent_volumes.cc
  void take_object(Pod& pod, Object object);
  bool poll_sources(Mirror& mirror, SourceKind kind);
  void source_event(SourceKind kind, const client::Event& event);
  void check_volumes();
  void tend_volumes(Pod& pod);
  // agent_claims.cc
  void reclaim_volumes();
  void reclaim(const Object& volume);
  void let_go(const Object& volume);
  // agent_pods.cc
  void pod_event(const client::Event& event);
  void adopt(const std::vector<std::string>& uids);
  void clear_away(const std::string& uid);
  void resync();
  void images_changed();
  void visit(const std::string& uid);
  std::optional<std::string> find_port_clash(const Pod& pod) const;
  void ask_runtime(Pod& pod);
  void remove(Pod& pod);
  void rest(Pod& pod, Duration wait);  // nothing is done with it until then
  void act(Pod& pod, PodActions actions);
  bool write_status(Pod& pod, const json::value& status, bool terminal);
  void finalise(Pod& pod);
  void start_sandbox(Pod& pod);
  // False: a container met an obstacle at once, plan again.
  bool start_containers(Pod& pod, const std::vector<PodActions::Start>& starts);
  void obstruct(Pod& pod, const std::string& container, const Refusal& refusal);
  void send_signals(Pod& pod, std::vector<PodActions::Signal> signals);
  void run_job(Pod& pod, std::function<Outcome(Runtime&)> job);
  void publish_running(const std::string& uid);
  void wake_pod(Pod& pod, Duration wait);
  EnvironmentInput environment(const json::value& pod, const json::value& container);

  // agent_services.cc
  void services_changed();
  void services_checked();
  void lead_services();
  void services_led(const Result<void>& done);

  // agent_images.cc
  // Nothing: it is being fetched, and its arrival visits the pod.
  std::optional<std::expected<ResolvedImage, Refusal>> image_for(Pod& pod,
                                                                 const json::value& container,
                                                                 int attempt);
  void fetch(Pod& pod, const json::value& container, int attempt, image::Reference reference);
  image::Keyring pull_secrets(const json::value& pod);
  void fetched(const std::string& uid, const std::string& container, const FetchOutcome& outcome);
  void forget_images(const std::set<std::string, std::less<>>& existing);

  // agent_health.cc
  std::map<std::string, Verdict, std::less<>> look_after(Pod& pod);
  void probe(Pod& pod, const json::value& container, ProbeKind kind);
  void probed(const std::string& uid, const std::string& container, ProbeKind kind, int attempt,
              Time began, const ProbeAnswer& answer);

  // agent_usage.cc
  void measure();  // and again, every few seconds
  void tell_idle(const UsageNote& note);
  std::vector<RunningPod> running_pods() const;  // from any thread
  // agent_progress.cc
  void look_at_progress(std::size_t round);  // and again, every few seconds
  void tell_progress(const ProgressNews& news);
  // agent_gpus.cc
  void register_gpus(const json::value& node);
  void hold_gpus(const std::string& uid);    // as an earlier life gave them
  void let_go_gpus(const std::string& uid);  // nothing of the pod runs any more
  std::expected<std::vector<Gpu>, Refusal> gpus_for(Pod& pod, const json::value& container);
  std::expected<Setup, Refusal> set_up(Pod& pod, const json::value& object,
                                       const json::value& container, int attempt,
                                       const ResolvedImage& image);

  // agent_hooks.cc
  void begin_hook(Pod& pod, const PodActions::Hook& hook);
  void hooked(const std::string& uid, const PodActions::Hook& hook, bool well);
  void give_up_hooks(Pod& pod);  // those whose container has ended

  client::Client& client_;
  Runtime& runtime_;
  const env::Clock& clock_;
  const AgentOptions options_;
  ApiAddress api_ = {};  // set before the first thread starts
  NodeInput node_ = {};
  Mailbox mailbox_ = {}, jobs_ = {};
  const std::shared_ptr<HeldBytes> held_ = std::make_shared<HeldBytes>();  // by jobs that wait
  Crew probers_{64};
  Crew hookers_{64};  // hooks may take minutes: probes do not wait behind them
  Crew pullers_{4};
  Crew sweepers_{1};
  Meter meter_;
  std::thread thread_ = {};
  std::vector<std::thread> workers_ = {};
  std::atomic_bool poll_posted_ = false;  // outlives the mirrors, whose watches set it

  // Below: the agent's thread only.
  Mirror pods_mirror_;
  Mirror services_mirror_;
  Mirror slices_mirror_;
  Mirror mappings_mirror_;
  Mirror maps_mirror_;     // keeps nothing: who reads a config map asks the server
  Mirror secrets_mirror_;  // likewise
  Mirror volumes_mirror_;
  std::vector<Object> mappings_ = {};
  PodEvents events_;
  TokenCache tokens_;
  GpuBook gpus_;
  ProgressDesk progress_ = {};
  unsigned volume_rounds_ = 0;
  std::set<std::string, std::less<>> reclaiming_ = {};  // volumes whose folder is being removed
  std::map<std::string, Pod, std::less<>> pods_ = {};
  std::set<std::string, std::less<>> strangers_ = {};  // in the runtime, but bound elsewhere
  std::string node_uid_ = {};
  bool mappings_stale_ = false, names_stale_ = false, adopted_ = false;
  bool services_stale_ = false;             // to be led anew
  bool services_busy_ = false;              // being led
  bool services_again_ = false;             // to be led even if nothing has changed
  bool services_failed_ = false;            // and that was told
  bool services_retry_ = false;             // one attempt is on its way
  bool services_never_ = false;             // the runtime cannot lead any
  bool services_led_ = false;               // cluster IPs lead somewhere, so names lead to them
  bool services_refused_ = false;           // they lead nowhere: containers are not told of them
  std::vector<ServicePort> services_ = {};  // as they were led last
  Duration names_pause_ = std::chrono::milliseconds(20);

  // Written by the agent's thread, read by any: runs under way by pod, for who follows a log, and
  // what DNS answers from.
  mutable std::mutex shared_mutex_;
  std::map<std::string, RunningPod, std::less<>> running_ = {};
  bool begun_ = false;                              // the pods of an earlier life are known
  std::set<std::string, std::less<>> unseen_ = {};  // of them those not yet looked at
  std::shared_ptr<const DnsRecords> records_;
};

}  // namespace skiff::node
