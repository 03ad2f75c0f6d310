#include "sim/checkers/checkers.h"

namespace skiff::sim {

const std::vector<Object>& View::of(const std::string& resource) const {
  static const std::vector<Object> kNone;
  const auto it = objects.find(resource);
  return it == objects.end() ? kNone : it->second;
}

std::vector<std::unique_ptr<Checker>> all_checkers() {
  std::vector<std::unique_ptr<Checker>> out;
  out.push_back(checkers::make_ownership());
  out.push_back(checkers::make_slots());
  out.push_back(checkers::make_gangs());
  out.push_back(checkers::make_capacity());
  out.push_back(checkers::make_revisions());
  out.push_back(checkers::make_finality());
  out.push_back(checkers::make_stream());
  out.push_back(checkers::make_durability());
  for (std::unique_ptr<Checker>& checker : checkers::make_training()) {
    out.push_back(std::move(checker));
  }
  for (std::unique_ptr<Checker>& checker : checkers::make_apps()) {
    out.push_back(std::move(checker));
  }
  return out;
}

}  // namespace skiff::sim
