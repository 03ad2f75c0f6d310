// What every verb gets: the global options and, on first use, the connection to a running Skiff.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/http.h"
#include "base/json.h"
#include "base/result.h"
#include "client/client.h"
#include "client/remote/access.h"
#include "client/remote/discovery.h"
#include "net/client.h"

namespace skiff::cli {

struct Globals {
  std::string data = {};  // --data, else $SKIFF_HOME, else ~/.skiff
  std::string ns = {};    // -n; empty: the kubeconfig's, else default
  bool all_namespaces = false;
  std::string output = {};  // -o json|yaml|wide|name|jsonpath=...
  std::string selector = {};
  std::string field_selector = {};
  std::string kubeconfig = {};    // --kubeconfig; empty: the data folder's, else $KUBECONFIG
  std::string kube_context = {};  // --context
  std::string as = {};
  std::vector<std::string> as_groups = {};
  bool colour = false;  // standard output is a terminal and NO_COLOR is not set
};

// A running API server.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual client::Client& client() = 0;
  // Any request; an answer of 400 and above comes back as the error its Status holds.
  virtual Result<http::Response> send(const http::Request& request) = 0;
  // A streamed answer, line by line, until it ends, `line` returns false or the time is over.
  virtual Result<void> lines(const http::Request& request,
                             const std::function<bool(std::string_view)>& line,
                             std::optional<std::chrono::milliseconds> time = {}) = 0;
  // A whole answer that may be large, piece by piece; `piece` returns an error to stop. It may be
  // silent for as long as `silence`, or for ever.
  virtual Result<void> download(
      const http::Request& request, const std::function<Result<void>(std::string_view)>& piece,
      std::optional<std::chrono::milliseconds> silence = std::chrono::minutes(1)) = 0;
  // A WebSocket in one of these protocols, comma-separated.
  virtual Result<std::unique_ptr<net::StreamingResponse>> websocket(const std::string& target,
                                                                    std::string_view protocols) = 0;
  // tfjob, tfjobs, TFJob, tfjobs.kubeflow.org, po: what kubectl accepts. The error names near ones.
  virtual Result<api::Kind> kind(std::string_view word) = 0;
  virtual Result<api::Kind> kind_of(const json::value& object) = 0;
  virtual Result<std::vector<api::Kind>> kinds() = 0;
  virtual Result<std::vector<client::Discovered>> resources() = 0;
  virtual std::string default_namespace() const = 0;
};

class Context {
 public:
  Globals globals;

  // Connects with --kubeconfig, else <data>/kubeconfig, else $KUBECONFIG, else as a pod of the
  // cluster it runs in. The error says how to start Skiff.
  Result<Connection*> connect();
  // The next connect() reads the kubeconfig again.
  void disconnect() { connection_.reset(); }
  // The namespace of this call: -n, else the connection's default.
  std::string ns();

 private:
  std::unique_ptr<Connection> connection_;
};

std::unique_ptr<Connection> open_connection(client::Access access);

// The kind a word means, among those a server has; the error says which there are like it.
Result<api::Kind> find_kind(const std::vector<api::Kind>& kinds, std::string_view word);

// KIND/NAME, or KIND NAME... as kubectl takes them.
struct Target {
  std::string kind = {};
  std::string name = {};  // empty: all of the kind
};
Result<std::vector<Target>> parse_targets(const std::vector<std::string>& words);

// The pods of a job, by the labels the training engine gives them; ordered by name. An empty kind
// is that of the only job of the name (job_pods.h).
Result<std::vector<Object>> pods_of_job(Connection& server, std::string_view ns,
                                        std::string_view job, std::string_view kind);
// Events about these objects (by uid), oldest first.
Result<std::vector<Object>> events_of(Connection& server, std::string_view ns,
                                      const std::vector<Object>& objects);

// "error: ..." on standard error; the exit code 1.
int report(const Error& error);

}  // namespace skiff::cli
