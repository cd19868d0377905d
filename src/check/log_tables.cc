#include <algorithm>

#include "check/log_line.h"
#include "check/log_read.h"

namespace batchwright::check {
namespace {

bool has(const std::string& name, std::string_view word) { return name.find(word) != std::string::npos; }

// What a column of a comparison holds, by words of its title; the first loss and the first norm count.
void set_cell(TableRow& row, const std::string& title, double number) {
  if (has(title, "acc") && !has(title, "accuracy"))
    row.accumulation = number;
  else if (has(title, "loss") && std::isnan(row.loss))
    row.loss = number;
  else if (has(title, "norm") && std::isnan(row.grad_norm))
    row.grad_norm = number;
  else if (has(title, "gpu") || has(title, "world"))
    row.processes = number;
  else if (has(title, "batch") || has(title, " bs") || title == "bs")
    row.micro_batch = number;
}

}  // namespace

std::vector<TableRow> read_comparison_tables(const LogText& log) {
  std::vector<TableRow> rows;
  std::vector<std::string> header;
  int line = log.first_line - 1;
  for (std::size_t start = 0; start < log.text.size();) {
    const std::size_t end = std::min(log.text.find('\n', start), log.text.size());
    std::string_view text = log.text.substr(start, end - start);
    start = end + 1;
    ++line;
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos || text[first] != '|') {
      header.clear();
      continue;
    }
    text = text.substr(first + 1);
    const std::vector<std::string> cells = split_cells(text.substr(0, text.find_last_of('|')), '|');
    if (header.empty()) {
      header = cells;
      continue;
    }
    TableRow row{.line = line};
    for (std::size_t i = 0; i < std::min(header.size(), cells.size()); ++i) {
      if (const auto number = parse_number(cells[i])) set_cell(row, normal_key(header[i]), *number);
    }
    if (!std::isnan(row.accumulation) && (!std::isnan(row.loss) || !std::isnan(row.grad_norm)))
      rows.push_back(row);
  }
  return rows;
}

}  // namespace batchwright::check
