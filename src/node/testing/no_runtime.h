// A runtime that refuses everything, for tests that ask none or one thing of it.
#pragma once

#include "node/runtime.h"

namespace skiff::node {

class NoRuntime : public Runtime {
 public:
  Result<SandboxRecord> start_sandbox(const SandboxSpec&) override { return no(); }
  Result<void> start_container(std::string_view, const ContainerSpec&) override { return no(); }
  Result<void> signal(std::string_view, std::string_view, int) override { return no(); }
  Result<std::unique_ptr<ExecSession>> exec(std::string_view, const ExecSpec&) override {
    return no();
  }
  Result<int> attach(std::string_view, std::string_view, bool, int, int) override { return no(); }
  Result<int> open_socket(std::string_view, bool) override { return no(); }
  Result<void> lead_services(const std::vector<ServicePort>&) override { return no(); }
  Result<SandboxRecord> inspect(std::string_view) override { return no(); }
  std::vector<std::optional<Reading>> measure(const std::vector<MeasureTarget>&, bool) override {
    return {};
  }
  Result<void> stop_sandbox(std::string_view) override { return no(); }
  Result<void> remove_sandbox(std::string_view) override { return no(); }
  std::vector<std::string> list() override { return {}; }
  Result<std::string> pod_folder(std::string_view) override { return no(); }
  std::string log_path(std::string_view, std::string_view, int) const override { return ""; }
  void on_change(std::function<void(std::string)>) override {}

 private:
  static std::unexpected<Error> no() { return fail(Code::kInternal, "no runtime"); }
};

}  // namespace skiff::node
