// The skiff binary: the shim of a pod, the holder of namespaces, or the command line.
#include <string_view>

#include "assembly/backup.h"
#include "assembly/platform.h"
#include "assembly/rootless.h"
#include "assembly/serve.h"
#include "cli/cli.h"
#include "node/rootless/rootless.h"
#include "node/shim/shim.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "shim") return skiff::node::shim_main(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "hold") return skiff::node::hold_main(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "sweep") {
    return skiff::assembly::sweep_main(argc, argv);
  }
  return skiff::cli::run(argc, argv,
                         {.serve = skiff::assembly::serve,
                          .clean_up = skiff::assembly::clean_up,
                          .purge = skiff::assembly::purge,
                          .inspect_backup = skiff::assembly::inspect_backup,
                          .stage_restore = skiff::assembly::stage_restore,
                          .restore = skiff::assembly::restore_stopped});
}
