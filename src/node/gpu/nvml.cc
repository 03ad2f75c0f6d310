#include "node/gpu/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

namespace skiff::node {
namespace {

// From the library's documentation.
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;  // percent
};
constexpr unsigned kTextBytes = 96;

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*minor)(void*, unsigned*) = nullptr;
  // Into a MemoryInfo and a Utilization, which the library calls by names of its own.
  int (*memory)(void*, void*) = nullptr;
  int (*utilization)(void*, void*) = nullptr;

  // The name of the first that the library has not; empty: it has them all.
  std::string_view load(void* library) {
    std::string_view missing;
    const auto find = [&](auto& function, const char* symbol) {
      void* address = ::dlsym(library, symbol);
      if (address == nullptr && missing.empty()) missing = symbol;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    };
    find(init, "nvmlInit_v2");
    find(shutdown, "nvmlShutdown");
    find(error_text, "nvmlErrorString");
    find(count, "nvmlDeviceGetCount_v2");
    find(handle, "nvmlDeviceGetHandleByIndex_v2");
    find(uuid, "nvmlDeviceGetUUID");
    find(name, "nvmlDeviceGetName");
    find(minor, "nvmlDeviceGetMinorNumber");
    find(memory, "nvmlDeviceGetMemoryInfo");
    find(utilization, "nvmlDeviceGetUtilizationRates");
    return missing;
  }
};

Nvml::Nvml(void* library, std::unique_ptr<Functions> functions)
    : library_(library), call_(std::move(functions)) {}

Nvml::~Nvml() {
  call_->shutdown();
  ::dlclose(library_);
}

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string& library) {
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* why = ::dlerror();
    return fail(Code::kNotFound, why == nullptr ? "cannot load " + library : why);
  }
  auto functions = std::make_unique<Functions>();
  const std::string missing(functions->load(loaded));
  const int began = missing.empty() ? functions->init() : 0;
  if (missing.empty() && began == 0) {
    return std::unique_ptr<Nvml>(new Nvml(loaded, std::move(functions)));
  }
  const std::string why =
      missing.empty() ? std::string(functions->error_text(began)) : "it has no " + missing;
  ::dlclose(loaded);
  return fail(Code::kInternal, fmt::format("{} cannot be used: {}", library, why));
}

Result<void> Nvml::check(int code, const char* what) const {
  if (code == 0) return {};
  return fail(Code::kInternal,
              fmt::format("cannot read {} of a GPU: {}", what, call_->error_text(code)));
}

Result<std::vector<void*>> Nvml::handles() const {
  unsigned count = 0;
  SKIFF_TRY(check(call_->count(&count), "the number"));
  std::vector<void*> out;
  for (unsigned i = 0; i < count; ++i) {
    void* handle = nullptr;
    SKIFF_TRY(check(call_->handle(i, &handle), "the handle"));
    out.push_back(handle);
  }
  return out;
}

Result<std::vector<Gpu>> Nvml::gpus() const {
  SKIFF_ASSIGN(const std::vector<void*> all, handles());
  std::vector<Gpu> out;
  for (void* handle : all) {
    char uuid[kTextBytes] = {}, name[kTextBytes] = {};
    unsigned minor = 0;
    MemoryInfo memory{};
    SKIFF_TRY(check(call_->uuid(handle, uuid, kTextBytes), "the UUID"));
    SKIFF_TRY(check(call_->minor(handle, &minor), "the device number"));
    SKIFF_TRY(check(call_->memory(handle, &memory), "the memory"));
    // A name is for people only.
    (void)call_->name(handle, name, kTextBytes);
    out.push_back({.uuid = uuid,
                   .name = name,
                   .minor = static_cast<int>(minor),
                   .memory_bytes = static_cast<std::int64_t>(memory.total)});
  }
  return out;
}

Result<std::vector<GpuLoad>> Nvml::loads() const {
  SKIFF_ASSIGN(const std::vector<void*> all, handles());
  std::vector<GpuLoad> out;
  for (void* handle : all) {
    Utilization utilization{};
    MemoryInfo memory{};
    SKIFF_TRY(check(call_->utilization(handle, &utilization), "the utilization"));
    SKIFF_TRY(check(call_->memory(handle, &memory), "the memory"));
    out.push_back({.busy_percent = static_cast<int>(utilization.gpu),
                   .memory_bytes = static_cast<std::int64_t>(memory.used)});
  }
  return out;
}

}  // namespace skiff::node
