#pragma once

#include <filesystem>
#include <string>

#include "base/interrupt.h"
#include "base/progress.h"
#include "cli/training_arguments.h"
#include "data/length_statistics.h"

namespace batchwright::cli {

// MODEL and DATA, checked and tokenised.
struct PreparedInput {
  std::filesystem::path model_folder, token_file;
  std::string content_id;  // of the tokens: same id, same data
  std::int64_t training_rows = 0;
  data::LengthStatistics lengths;  // of its examples
};

// Throws NotFound, InvalidInput or Unsupported naming the file, and Usage when a step needs more rows than
// there are.
PreparedInput prepare_input(const ModelAndData& input, const TrainingArguments& arguments,
                            const InterruptGuard& interrupt, Progress& progress);

// Optimizer steps of a training with these options: --steps, or --epochs over the training rows.
std::int64_t planned_steps(const run::TrainingOptions& options, std::int64_t training_rows);

// What makes two runs the same question: their folders are shared, and another request's is refused.
Json request_of(const std::string& verb, const PreparedInput& input, const run::TrainingOptions& options);

// "batchwright-runs/tune-1a2b3c4d": the same request names the same folder, so the same command continues.
std::filesystem::path default_run_folder(const std::string& verb, const Json& request);

}  // namespace batchwright::cli
