// The driver's own library for NVIDIA GPUs (NVML), loaded at run time where it is there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/gpu/gpu_book.h"

namespace skiff::node {

class Nvml {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  // kNotFound where there is no such library, which is how most machines are. Any other error: it
  // is there and does not work.
  static Result<std::unique_ptr<Nvml>> open(const std::string& library = kLibrary);
  ~Nvml();

  // In the driver's order. From any thread.
  Result<std::vector<Gpu>> gpus() const;
  Result<std::vector<GpuLoad>> loads() const;  // in the same order

 private:
  struct Functions;
  Nvml(void* library, std::unique_ptr<Functions> functions);
  Result<void> check(int code, const char* what) const;
  Result<std::vector<void*>> handles() const;

  void* library_ = nullptr;
  std::unique_ptr<Functions> call_;
};

}  // namespace skiff::node
