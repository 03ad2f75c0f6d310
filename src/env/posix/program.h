// Runs another program to its end and takes what it prints: credential plug-ins, editors.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace skiff::env::posix {

struct Program {
  // The first is the program: a path where it has a slash, else looked for in PATH.
  std::vector<std::string> arguments = {};
  // On top of our own environment; a name that is there already is replaced.
  std::vector<std::pair<std::string, std::string>> environment = {};
  bool shares_input = false;  // false: it reads nothing
  // Past them it is killed, and that is an error.
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  std::size_t output_bytes = 1024 * 1024;
};

struct Finished {
  int exit_code = 0;  // 128 + the signal that ended it
  std::string output = {};
};

// Standard error is shared. kNotFound: there is no such program.
Result<Finished> run_program(const Program& program);

}  // namespace skiff::env::posix
