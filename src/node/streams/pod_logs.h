// The bytes behind `kubectl logs`: from a pod and a container to the right log file.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "apiserver/pod_streams.h"
#include "node/runtime.h"
#include "node/streams/logs.h"

namespace skiff::node {

class PodLogs final : public apiserver::PodStreams {
 public:
  // True while this run of a container may still write. From any thread; Agent::running() is it.
  using Running =
      std::function<bool(std::string_view pod_uid, std::string_view container, int attempt)>;

  PodLogs(Runtime& runtime, Running running);

  Result<std::unique_ptr<http::Stream>> logs(const json::value& pod,
                                             const apiserver::LogOptions& options) override;
  Result<std::unique_ptr<apiserver::Peer>> exec(const json::value& pod,
                                                const apiserver::ExecOptions& options) override;
  Result<std::unique_ptr<apiserver::Peer>> attach(const json::value& pod,
                                                  const apiserver::ExecOptions& options) override;
  std::unique_ptr<apiserver::Peer> dial(const json::value& pod, int port) override;

 private:
  Runtime& runtime_;
  const Running running_;
  LogReader reader_ = {};
};

// Which run of the container is meant, from the pod's status. kBadRequest, in Kubernetes' words,
// where there is none.
Result<int> log_attempt(const json::value& pod, std::string_view container, bool previous);

}  // namespace skiff::node
