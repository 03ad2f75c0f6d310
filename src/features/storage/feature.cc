#include "features/storage/feature.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "api/core/claims.h"
#include "api/meta.h"

namespace skiff::storage {
namespace {

// What is so for a while is told once, not with every plan.
class Told {
 public:
  void filter(control::GlobalPlan& plan) {
    std::map<std::string, control::Note, std::less<>> now;
    std::erase_if(plan.batches, [&](const control::Batch& batch) {
      if (!batch.writes.empty()) return false;
      bool known = true;
      for (const auto& [object, note] : batch.notes) {
        const std::string uid(api::uid(*object));
        const auto before = told_.find(uid);
        known = known && before != told_.end() && before->second == note;
        now[uid] = note;
      }
      return known;
    });
    told_ = std::move(now);
  }

 private:
  std::map<std::string, control::Note, std::less<>> told_ = {};  // by uid
};

}  // namespace

control::GlobalController make(StorageOptions options) {
  auto books = std::make_shared<Books>();
  auto told = std::make_shared<Told>();
  return {.name = "persistentvolume-controller",
          .watched = Books::watched(),
          .changed = [books](std::size_t which, const Object& before,
                             const Object& after) { books->changed(which, before, after); },
          .plan =
              [books, told, options = std::move(options)](Time) {
                control::GlobalPlan plan = plan_storage(books->world(), options);
                told->filter(plan);
                return plan;
              }};
}

client::Write default_class() {
  client::Write write{.resource = class_resource()};
  write.body =
      json::object{{"apiVersion", "storage.k8s.io/v1"},
                   {"kind", "StorageClass"},
                   {"metadata",
                    {{"name", "standard"},
                     {"annotations", {{"storageclass.kubernetes.io/is-default-class", "true"}}}}},
                   {"provisioner", json::string(api::kLocalProvisioner)},
                   {"reclaimPolicy", "Delete"},
                   {"allowVolumeExpansion", true},
                   {"volumeBindingMode", "WaitForFirstConsumer"}};
  return write;
}

}  // namespace skiff::storage
