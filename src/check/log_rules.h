#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/config_rules.h"
#include "check/log_read.h"

namespace batchwright::check {

// A log with everything that is known about its run: from the log itself, from configurations beside it, and
// from hints on the command line, in this order of trust. Absent: not known.
struct LoggedRun {
  LogRun log;
  std::optional<double> micro_batch, accumulation, processes, effective_batch;
  std::optional<double> examples, epochs, total_steps, warmup_steps, warmup_ratio, learning_rate, clip;
  std::optional<double> classes, vocabulary;
  std::optional<double> epochs_asked,
      max_steps_asked;   // what the arguments ask for; the others may be the log's own
  std::string schedule;  // "linear", "cosine", "constant", or "" when not known
  bool fp16 = false;
  bool from_scratch = false;  // the weights are random at step 0
  bool language_model = false;

  // Optimizer steps of the whole run, from the declared total or from the data.
  std::optional<double> steps_in_all() const;
  // Fraction of the run at which a record stands, by step or by epoch; empty when neither is known.
  std::optional<double> progress(const LogRecord& record) const;
};

double median(std::vector<double> values);  // NaN for none

// |log(a / b)| <= log(1 + tolerance): a is b within a factor.
bool within_factor(double a, double b, double tolerance);

// Each looks at one log.
void check_schedule(const LoggedRun& run, FindingList& found);
void check_first_loss(const LoggedRun& run, FindingList& found);
void check_against_evaluation(const LoggedRun& run, FindingList& found);
void check_steps_per_epoch(const LoggedRun& run, FindingList& found);
void check_epochs_made(const LoggedRun& run, FindingList& found);
void check_epoch_edges(const LoggedRun& run, FindingList& found);
void check_gradient_norms(const LoggedRun& run, FindingList& found);

// Two logs of runs that should see the same gradient: which constant stands between them.
void check_pair(const LoggedRun& plain, const LoggedRun& accumulated, FindingList& found);
// A table of losses over accumulation steps.
void check_comparison(const std::vector<TableRow>& rows, std::size_t file, FindingList& found);
// Messages of trainers and engines that name a mistake themselves.
void check_messages(const LogText& log, FindingList& found);

}  // namespace batchwright::check
