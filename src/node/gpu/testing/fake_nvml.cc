// A library with the functions of libnvidia-ml that Skiff uses. The environment variable FAKE_NVML
// says which GPUs there are: UUID:MINOR:TOTAL_MIB:USED_MIB:BUSY_PERCENT,... or "broken".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kOk = 0;
constexpr int kInvalid = 2;
constexpr int kTooSmall = 7;
constexpr int kNoDriver = 9;

struct Device {
  std::string uuid = {};
  unsigned minor = 0;
  unsigned long long total = 0, used = 0;
  unsigned busy = 0;
};

std::vector<Device> g_devices;

bool read_devices(const char* text) {
  g_devices.clear();
  for (const char* at = text; *at != 0;) {
    char uuid[96] = {};
    Device device;
    int length = 0;
    if (std::sscanf(at, "%95[^:]:%u:%llu:%llu:%u%n", uuid, &device.minor, &device.total,
                    &device.used, &device.busy, &length) != 5) {
      return false;
    }
    device.uuid = uuid;
    g_devices.push_back(device);
    at += length;
    if (*at == ',') ++at;
  }
  return true;
}

Device* device(void* handle) { return static_cast<Device*>(handle); }

int copy(const std::string& text, char* out, unsigned room) {
  if (text.size() + 1 > room) return kTooSmall;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kOk;
}

}  // namespace

extern "C" {

struct FakeMemory {
  unsigned long long total, free, used;
};
struct FakeUtilization {
  unsigned gpu, memory;
};

int nvmlInit_v2() {
  const char* text = std::getenv("FAKE_NVML");
  return text != nullptr && read_devices(text) ? kOk : kNoDriver;
}
int nvmlShutdown() { return kOk; }
const char* nvmlErrorString(int code) { return code == kNoDriver ? "Driver Not Loaded" : "Error"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(g_devices.size());
  return kOk;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= g_devices.size()) return kInvalid;
  *handle = &g_devices[index];
  return kOk;
}
int nvmlDeviceGetUUID(void* handle, char* out, unsigned room) {
  return copy(device(handle)->uuid, out, room);
}
int nvmlDeviceGetName(void*, char* out, unsigned room) { return copy("Fake GPU 9000", out, room); }
int nvmlDeviceGetMinorNumber(void* handle, unsigned* minor) {
  *minor = device(handle)->minor;
  return kOk;
}
int nvmlDeviceGetMemoryInfo(void* handle, void* memory) {
  const Device& d = *device(handle);
  *static_cast<FakeMemory*>(memory) = {d.total << 20, (d.total - d.used) << 20, d.used << 20};
  return kOk;
}
int nvmlDeviceGetUtilizationRates(void* handle, void* rates) {
  *static_cast<FakeUtilization*>(rates) = {device(handle)->busy, 0};
  return kOk;
}

}  // extern "C"
