// How the CLI prints: columns as kubectl aligns them, colours only on a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::cli {

// Left-aligned columns, three spaces between them, no space after the last.
std::string columns(const std::vector<std::vector<std::string>>& rows);

// The rows of a meta.k8s.io/v1 Table as text; columns of priority > 0 only where `wide`.
// `with_namespace` puts NAMESPACE first. `with_header` false: rows only (for later watch events).
std::string table_text(const json::value& table, bool wide, bool with_namespace, bool with_header);

enum class Colour { kNone, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan, kGrey, kBold };
// `text` wrapped in the terminal's codes where `enabled`.
std::string paint(std::string_view text, Colour colour, bool enabled);
// A colour for the n-th of several streams, the same every time.
Colour stream_colour(std::size_t n);

// What a person reads in a terminal may not move the cursor: control characters become '?'.
std::string printable(std::string_view text);

}  // namespace skiff::cli
