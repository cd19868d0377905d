#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/log_read.h"

namespace batchwright::check {

// "key: value" pairs of one line, in order, whatever stands between them: JSON objects, Python dicts,
// "loss=0.3",
// "| lm loss: 6.5E+00 |", "step 10/300". Keys are normalised (lower case, '_' for spaces and dashes).
struct LinePair {
  std::string key;
  std::string value;
};
std::vector<LinePair> pairs_of_line(std::string_view line);

// Sets the record's fields from a key that logs use for them; returns whether it was one. Keys of evaluation
// ("eval_loss", "val loss") set eval_loss.
bool set_field(LogRecord& record, const std::string& key, const std::string& value);

// What a key of a run's header or of printed settings declares ("Total optimization steps", "num_labels").
std::optional<Quantity> declared_quantity(const std::string& key);

// The cells of a row of CSV or of a Markdown table, without the spaces, quotes and emphasis around them.
std::vector<std::string> split_cells(std::string_view row, char separator);

// A progress bar's "37/300 [00:41<..." -> {37, 300}.
std::optional<std::pair<double, double>> progress_of_line(std::string_view line);

}  // namespace batchwright::check
