// What a CustomResourceDefinition costs when ninety others are there.
#pragma once

#include <string>

namespace skiff::bench {

void definitions(const std::string& binary, const std::string& data);

}  // namespace skiff::bench
