// What the Accept header asks for. Answers are JSON always; the question is in which shape.
#pragma once

#include <string>
#include <string_view>

namespace skiff::apiserver {

enum class Shape {
  kObject,           // the objects themselves
  kTable,            // meta.k8s.io Table
  kPartialMetadata,  // PartialObjectMetadata or its list
};

struct Wanted {
  Shape shape = Shape::kObject;
  std::string version = "v1";  // of meta.k8s.io
};
Wanted wanted_shape(std::string_view accept);

// The version of apidiscovery.k8s.io the client prefers; empty: the old discovery documents.
std::string wanted_discovery(std::string_view accept);
// False where the client takes neither JSON nor anything.
bool accepts_json(std::string_view accept);

}  // namespace skiff::apiserver
