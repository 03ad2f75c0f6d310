// One running container as its pod's shim sees it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "node/cgroup/cgroup.h"
#include "node/shim/files.h"
#include "node/shim/log_file.h"
#include "node/shim/log_writer.h"
#include "node/shim/wire.h"

namespace skiff::node {

// What all containers of a pod share.
struct PodContext {
  std::string folder = {};
  SandboxFile file = {};
  Cgroups cgroups = {};
  Fd pid_namespace = {};  // the shim's own, to come back to
};

class Container {
 public:
  // Starts the program. A program that could not be started is not an error here: its record says
  // why (kFailedToStart) and is already written.
  static Result<std::unique_ptr<Container>> start(const PodContext& pod, const ContainerSpec& spec);

  const ContainerRecord& record() const { return record_; }
  const ContainerSpec& spec() const { return spec_; }
  const std::string& group() const { return group_; }  // control group; empty: none
  bool running() const { return record_.state == ContainerState::kRunning; }
  // Whether the record is on disk; where the disk is full it is not, and save() tries again.
  bool saved() const { return saved_; }
  void save();
  LogPipe& out() { return out_; }
  LogPipe& err() { return err_; }
  // Moves some of what it has printed into the log.
  void drain(LogPipe& pipe, std::size_t bytes_max);
  // What the program reads, to be written to; not valid where it reads nothing. With stdin_once it
  // can be had once, and the program's input ends when the taker closes it.
  Fd take_input();
  // Asks where its calls lead; not valid where nobody is to be asked. It is the taker's.
  Fd take_calls() { return std::move(calls_); }

  void signal(int signal);
  // After init was reaped: takes the rest of the output and writes the exit record.
  void finish(int wait_status);

 private:
  Container(const PodContext& pod, const ContainerSpec& spec);
  void forget_old_runs() const;
  Result<void> prepare();
  Result<void> launch();
  void fail_start(const std::string& why);
  std::string termination_message() const;

  const PodContext& pod_;
  ContainerSpec spec_;
  ContainerRecord record_ = {};
  std::string group_ = {};
  std::string termination_file_ = {};
  bool saved_ = true;
  LogFile log_ = {};
  Fd report_ = {};
  Fd calls_ = {};
  Fd input_ = {};  // of the program
  LogPipe out_ = {};
  LogPipe err_ = {};
};

}  // namespace skiff::node
