#include "assembly/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "assembly/cluster.h"
#include "assembly/log.h"
#include "assembly/platform.h"

namespace skiff::assembly {
namespace {

// Every pod, watcher and connection costs a descriptor; the default of 1,024 is for other programs.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// Returns when it is time to stop. A terminal that closes is no reason.
void wait_for_signal(const sigset_t& signals) {
  int signal = 0;
  do {
    sigwait(&signals, &signal);
  } while (signal == SIGHUP);
}

int report(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return 1;
}

int serve_cluster(const cli::UpOptions& options, const sigset_t& signals) {
  const auto cluster = Cluster::start(options);
  if (!cluster) return report(cluster.error());
  if (options.ready) options.ready((*cluster)->summary());
  wait_for_signal(signals);
  log_line("stopping; what runs in the cluster goes on");
  return 0;
}

// From start to stop. True: it is to start again, as it was started before.
Result<bool> run_once(const cli::UpOptions& options, const sigset_t& signals, Outside& outside) {
  std::atomic<bool> keep_pods = true, again = false;
  SKIFF_ASSIGN(const auto platform, Platform::start(
                                        options,
                                        [&](bool keep, bool start_again) {
                                          keep_pods = keep;
                                          again = start_again;
                                          kill(getpid(), SIGTERM);
                                        },
                                        outside));
  if (options.ready) options.ready(platform->summary());
  wait_for_signal(signals);
  log_line(keep_pods ? "stopping; pods go on" : "stopping, pods too");
  platform->stop(keep_pods);
  return again.load();
}

int serve_machine(const cli::UpOptions& options, const sigset_t& signals) {
  Outside outside;
  while (true) {
    const auto start_again = run_once(options, signals, outside);
    if (!start_again) return report(start_again.error());
    if (!*start_again) return 0;
    log_line("starting again");
  }
}

}  // namespace

int serve(const cli::UpOptions& options) {
  raise_file_limit();
  // Blocked before the first thread starts, so that only sigwait takes them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return options.kubeconfig.empty() ? serve_machine(options, signals)
                                    : serve_cluster(options, signals);
}

}  // namespace skiff::assembly
