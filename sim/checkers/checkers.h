// The checkers there are; sim/checkers.cc lists them.
#pragma once

#include <memory>
#include <vector>

#include "sim/checker.h"

namespace skiff::sim::checkers {

std::unique_ptr<Checker> make_ownership();
std::unique_ptr<Checker> make_slots();
std::unique_ptr<Checker> make_gangs();
std::unique_ptr<Checker> make_capacity();
std::unique_ptr<Checker> make_revisions();
std::unique_ptr<Checker> make_finality();
std::unique_ptr<Checker> make_stream();
std::unique_ptr<Checker> make_durability();
std::vector<std::unique_ptr<Checker>> make_training();  // several, each with its name
std::vector<std::unique_ptr<Checker>> make_apps();      // so are these

}  // namespace skiff::sim::checkers
