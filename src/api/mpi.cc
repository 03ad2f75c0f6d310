#include "api/mpi.h"

#include <fmt/format.h>

namespace skiff::mpi {
namespace {

// Only what every POSIX shell has: it runs in images of all ages. A launcher may start before its
// workers, so the script waits for the one it is asked for; else mpirun would fail and start again
// and again. What will never come is said at once.
constexpr std::string_view kBegin = R"script(#!/bin/sh
# Starts a program in a worker's pod: kubexec.sh [ssh options] HOST PROGRAM [ARGUMENTS]
say() { echo "kubexec: $*" >&2; }

while [ $# -gt 0 ]; do
  case "$1" in
    -[bcDEeFIiJLlmOopQRSWw]) shift; [ $# -gt 0 ] && shift ;;
    -*) shift ;;
    *) break ;;
  esac
done
if [ $# -lt 2 ]; then
  say "usage: kubexec.sh HOST PROGRAM [ARGUMENTS]"
  exit 2
fi
pod=${1#*@}
pod=${pod%%.*}
shift

kubectl=/opt/kube/kubectl
if [ ! -x "$kubectl" ]; then
  kubectl=$(command -v kubectl) || {
    say "there is no kubectl in this image, neither at /opt/kube/kubectl nor in PATH:" \
      "no program can be started in $pod"
    exit 127
  }
fi

)script";

constexpr std::string_view kByName = R"script(waited=0
missing=0
while :; do
  phase=$("$kubectl" get pod "$pod" -o 'jsonpath={.status.phase}' 2>&1)
  code=$?
  if [ "$code" -eq 0 ]; then
    missing=0
    case "$phase" in
      *Running) break ;;
      *Succeeded | *Failed)
        say "the pod $pod has ended ($phase) and runs no more programs"
        exit 1
        ;;
    esac
  elif [ "$code" -ge 126 ]; then
    say "$kubectl does not run in this image: $phase"
    exit "$code"
  else
    missing=$((missing + 1))
    if [ "$missing" -ge 60 ]; then
      say "the pod $pod cannot be looked up: $phase"
      exit 1
    fi
  fi
  [ $((waited % 30)) -eq 0 ] && say "waiting for the pod $pod: $phase"
  waited=$((waited + 1))
  sleep 1
done
)script";

// One that has ended is replaced, or the set it belongs to ends, and with it who waits here.
constexpr std::string_view kByMap = R"script(waited=0
missing=0
host=$pod
pod=
while :; do
  known=$("$kubectl" get configmap @MAP@ -o 'jsonpath={.data.pods}' 2>&1)
  code=$?
  if [ "$code" -eq 0 ]; then
    missing=0
    for line in $known; do
      case "$line" in "$host="*) pod=${line#*=} ;; esac
    done
    [ -n "$pod" ] && break
  elif [ "$code" -ge 126 ]; then
    say "$kubectl does not run in this image: $known"
    exit "$code"
  else
    missing=$((missing + 1))
    if [ "$missing" -ge 60 ]; then
      say "the pod of $host cannot be looked up: $known"
      exit 1
    fi
  fi
  [ $((waited % 30)) -eq 0 ] && say "waiting for $host"
  waited=$((waited + 1))
  sleep 1
done
)script";

constexpr std::string_view kMapMark = "@MAP@";

// Waits, and ends when it is told to, with the code of who was: ended by itself it would have done
// its part. A shell that only slept would not hear the signal before its sleep is over.
constexpr std::string_view kSleeper =
    "trap 'exit 143' TERM INT; while :; do sleep 3600 & wait $!; done";

std::string start(std::string_view container) {
  const std::string option = container.empty() ? "" : fmt::format(" -c {}", container);
  return fmt::format("exec \"$kubectl\" exec \"$pod\"{} -- /bin/sh -c \"$*\"\n", option);
}

bool is_empty(const json::object& container, std::string_view key) {
  const json::value* list = container.if_contains(key);
  return list == nullptr || !list->is_array() || list->get_array().empty();
}

// As a command, or as arguments for the image's entrypoint.
bool is_sshd(const json::object& container) {
  const std::string_view key = is_empty(container, "command") ? "args" : "command";
  if (is_empty(container, key)) return false;
  const json::value& first = container.at(key).get_array()[0];
  if (!first.is_string()) return false;
  const std::string_view program = json::view(first.get_string());
  return program == "sshd" || program.ends_with("/sshd");
}

}  // namespace

std::string remote_shell(std::string_view container) {
  return fmt::format("{}{}{}", kBegin, kByName, start(container));
}

std::string remote_shell_by_map(std::string_view config_map, std::string_view container) {
  std::string find(kByMap);
  find.replace(find.find(kMapMark), kMapMark.size(), config_map);
  return fmt::format("{}{}{}", kBegin, find, start(container));
}

// Both for the run-time that Open MPI had up to its version 4, and for the one it has since.
std::vector<std::pair<std::string, std::string>> open_mpi_variables() {
  const std::string shell(kRemoteShell);
  const std::string hosts(kHostFile);
  return {{"OMPI_MCA_plm_rsh_agent", shell},
          // Workers have no remote shell to start others with.
          {"OMPI_MCA_plm_rsh_no_tree_spawn", "true"},
          {"OMPI_MCA_orte_default_hostfile", hosts},
          {"OMPI_MCA_orte_keep_fqdn_hostnames", "true"},
          {"PRTE_MCA_plm_ssh_agent", shell},
          {"PRTE_MCA_plm_ssh_no_tree_spawn", "true"},
          {"PRTE_MCA_prte_default_hostfile", hosts},
          {"PRTE_MCA_prte_keep_fqdn_hostnames", "true"},
          // The root of a pod, not of a machine.
          {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
          {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
}

// A worker waits for what the launcher starts in it. One that was to be an sshd waits, too: its
// keys would come from a secret that nobody needs here, and it would fail without them.
void make_wait(json::object& container) {
  const bool idle = is_empty(container, "command") && is_empty(container, "args");
  if (!idle && !is_sshd(container)) return;
  container.erase("args");
  // They would ask for an sshd, which is not there.
  for (const std::string_view probe : {"startupProbe", "readinessProbe", "livenessProbe"}) {
    if (!idle) container.erase(probe);
  }
  container["command"] = json::array{"/bin/sh", "-c", json::string(kSleeper)};
}

}  // namespace skiff::mpi
