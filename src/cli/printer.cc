#include "cli/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace skiff::cli {
namespace {

// Width on screen, near enough: UTF-8 continuation bytes take no column.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string cell_text(const json::value& cell) {
  if (cell.is_string()) return printable(json::view(cell.get_string()));
  if (cell.is_null()) return "<none>";
  return json::serialize(cell);
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

}  // namespace

std::string columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out += std::string(widths[i] - width(row[i]) + 3, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string table_text(const json::value& table, bool wide, bool with_namespace, bool with_header) {
  std::vector<std::size_t> shown;
  std::vector<std::string> header;
  if (with_namespace) header.emplace_back("NAMESPACE");
  const json::array& definitions = json::get_array(table, {"columnDefinitions"});
  for (std::size_t i = 0; i < definitions.size(); ++i) {
    if (json::get_int(definitions[i], {"priority"}).value_or(0) > 0 && !wide) continue;
    shown.push_back(i);
    header.push_back(upper(json::get_string(definitions[i], {"name"})));
  }
  std::vector<std::vector<std::string>> rows;
  if (with_header) rows.push_back(std::move(header));
  for (const json::value& row : json::get_array(table, {"rows"})) {
    std::vector<std::string> line;
    if (with_namespace) {
      line.emplace_back(json::get_string(row, {"object", "metadata", "namespace"}));
    }
    const json::array& cells = json::get_array(row, {"cells"});
    for (const std::size_t i : shown) {
      line.push_back(i < cells.size() ? cell_text(cells[i]) : "");
    }
    rows.push_back(std::move(line));
  }
  return columns(rows);
}

std::string paint(std::string_view text, Colour colour, bool enabled) {
  static constexpr std::array kCodes = {"", "31", "32", "33", "34", "35", "36", "90", "1"};
  if (!enabled || colour == Colour::kNone) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<std::size_t>(colour)], text);
}

Colour stream_colour(std::size_t n) {
  static constexpr std::array kOrder = {Colour::kCyan,    Colour::kGreen, Colour::kYellow,
                                        Colour::kMagenta, Colour::kBlue,  Colour::kRed};
  return kOrder[n % kOrder.size()];
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](std::size_t at) {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
    };
    // U+0080 to U+009F in UTF-8: U+009B means to a terminal what ESC [ does.
    const bool wide = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9f;
    const bool control = (byte(i) < ' ' && text[i] != '\t' && text[i] != '\n') || byte(i) == 127;
    out += wide || control ? '?' : text[i];
    if (wide) ++i;
  }
  return out;
}

}  // namespace skiff::cli
