#include "sim/backend.h"

#include "control/testing/memory_server.h"

namespace skiff::sim {
namespace {

class MemoryBackend : public Backend {
 public:
  MemoryBackend(const env::Clock& clock, std::uint64_t seed) : server_(clock, seed) {}
  client::Client& client() override { return server_; }
  void work() override {}
  void flush() override {}
  bool safe() override { return true; }
  void restart(bool) override {}

 private:
  control::testing::MemoryServer server_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::vector<api::Kind>, const env::Clock& clock,
                                      std::uint64_t seed) {
  return std::make_unique<MemoryBackend>(clock, seed);
}

}  // namespace skiff::sim
