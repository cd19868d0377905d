#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/config_settings.h"

namespace batchwright::check {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// One line of a training log; what it does not say is NaN.
struct LogRecord {
  double step = kUnknown;   // optimizer steps, as the log counts them
  double epoch = kUnknown;  // may be fractional
  double loss = kUnknown;
  double grad_norm = kUnknown;
  double learning_rate = kUnknown;
  double eval_loss = kUnknown;
  int line = 0;
};

// One training run as its log tells it.
struct LogRun {
  std::string name;  // the file's name, with the key or heading where a file holds several runs
  std::size_t file = 0;
  int line = 0;
  std::vector<LogRecord> train;         // records with a training loss, in order
  std::vector<LogRecord> evals;         // records with an evaluation loss
  std::map<Quantity, double> declared;  // what the log itself says of the run (headers, trainer_state.json)
  std::map<std::string, std::string> words;  // schedule type, optimizer, model: in the log's own spelling
  std::vector<std::size_t> resumed_at;       // indices into train where the step went back
};

// A row of a comparison table: accumulation steps against the loss that somebody saw.
struct TableRow {
  double accumulation = kUnknown, micro_batch = kUnknown, processes = kUnknown, loss = kUnknown,
         grad_norm = kUnknown;
  int line = 0;
};

struct LogText {
  std::string_view text;
  std::size_t file = 0;
  int first_line = 1;
  std::string name;
};

// The runs of a text: trainer_state.json, other JSON with lists of records, JSON lines, printed dicts among
// other output, "step 10 loss 2.3 lr 1e-4" lines, CSV, and Markdown tables of steps. Never throws; any bytes
// will do.
std::vector<LogRun> read_logs(const LogText& log);

// Rows of Markdown tables that compare losses over accumulation steps.
std::vector<TableRow> read_comparison_tables(const LogText& log);

// Whether a text looks like a log at all: it holds two or more loss values that read_logs would find.
bool looks_like_log(std::string_view text);

}  // namespace batchwright::check
