#include "env/posix/heap.h"

#ifdef SKIFF_JEMALLOC

#include <jemalloc/jemalloc.h>

// One thread makes most objects and another frees them, for which glibc's heap takes a third of the
// loop's time. Most threads only wait: an arena for each would hold memory for nothing.
extern "C" const char* malloc_conf;
const char* malloc_conf = "narenas:4";

namespace skiff::env {

#define SKIFF_TEXT_OF(x) #x
#define SKIFF_TEXT(x) SKIFF_TEXT_OF(x)

void give_back_memory() {
  mallctl("arena." SKIFF_TEXT(MALLCTL_ARENAS_ALL) ".purge", nullptr, nullptr, nullptr, 0);
}

void keep_no_spare_memory() {
  bool enabled = false;
  mallctl("thread.tcache.enabled", nullptr, nullptr, &enabled, sizeof enabled);
}

}  // namespace skiff::env

#else  // sanitizers bring a heap of their own

#include <malloc.h>

namespace skiff::env {

void give_back_memory() { malloc_trim(0); }

void keep_no_spare_memory() {}

}  // namespace skiff::env

#endif
