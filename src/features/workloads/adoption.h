// Who belongs to whom: a root adopts what it selects and nobody controls, and releases what it
// controls and no longer selects.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/selectors.h"
#include "control/controller.h"

namespace skiff::workloads {

// spec.selector; nothing where it is missing, wrong or would take every object for its own.
std::optional<LabelSelector> selector_of(const json::value& root);
// The same of a ReplicationController, whose selector is a plain map.
std::optional<LabelSelector> map_selector_of(const json::value& root);

// How a root finds what it may adopt: objects of its namespace with the labels that it selects,
// without a controlling owner and not on their way out. A root that is deleted finds none.
using SelectorOf = std::function<std::optional<LabelSelector>(const json::value& root)>;
control::Related orphans(const api::Resource& resource, SelectorOf selector = selector_of);

// The write that makes `root` the controlling owner of an observed object, only if it is as it was
// observed: of two roots that want it one gets it.
client::Write adoption(const api::Resource& resource, const json::value& object,
                       const json::value& root);
// Adopts those of `seen` that the selector matches. True where there are any: what follows from
// them is for the next plan, which sees them as its own.
bool adopt(const api::Resource& resource, const json::value& root, const LabelSelector& selector,
           const std::vector<Object>& seen, control::Plan& plan);
// Those of `owned` that the selector matches. The others are released, unless they or the root are
// on their way out.
std::vector<Object> kept(const api::Resource& resource, const json::value& root,
                         const LabelSelector& selector, const std::vector<Object>& owned,
                         control::Plan& plan);

}  // namespace skiff::workloads
