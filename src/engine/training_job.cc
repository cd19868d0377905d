#include "engine/training_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace batchwright::engine {
namespace {

data::HoldOut rows_of(const data::TokenFile& tokens, const run::TrainingOptions& options) {
  return data::split_rows(tokens, options.eval_fraction, options.seed);
}

// A token file is checked against itself when it is opened; here against the model that will read it.
void check_fits(const data::TokenFile& tokens, const model::ModelConfig& config,
                const std::string& token_file) {
  if (tokens.largest_id() >= config.vocabulary) {
    throw Error(ErrorKind::InvalidInput, token_file,
                fmt::format("holds token id {}, and the model's vocabulary has {}", tokens.largest_id(),
                            config.vocabulary),
                "The tokenizer and the model belong to different models");
  }
  std::int64_t longest = 0;
  bool second_type = false;
  for (std::uint32_t row = 0; row < tokens.rows(); ++row) {
    longest = std::max<std::int64_t>(longest, tokens.length(row));
    for (const std::uint8_t type : tokens.type_ids(row))
      second_type = second_type || (config.type_vocabulary > 0 && type >= config.type_vocabulary);
  }
  if (longest > config.longest_sequence()) {
    throw Error(ErrorKind::InvalidInput, "--max-length",
                fmt::format("lets {} tokens through, and the model has {} positions", longest,
                            config.longest_sequence()),
                fmt::format("Use --max-length {}", config.longest_sequence()));
  }
  if (second_type) {
    throw Error(ErrorKind::InvalidInput, token_file,
                fmt::format("holds a token type that the model's {} do not include", config.type_vocabulary));
  }
}

}  // namespace

TrainingJob::TrainingJob(const run::EngineJob& engine_job)
    : job(engine_job),
      tokens(data::TokenFile::open(job.token_file)),
      rows(rows_of(tokens, job.options)),
      sampler(rows.train, job.options.effective_batch, job.options.seed),
      model(load_model(job.model_folder, job.options, tokens.task(), tokens.label_names(),
                       job.adapter_folder)) {
  check_fits(tokens, model->config, job.token_file);
}

std::int64_t TrainingJob::total_steps() const {
  if (job.options.steps.has_value()) return *job.options.steps;
  return std::max<std::int64_t>(
      1, std::llround(std::ceil(job.options.epochs * static_cast<double>(sampler.steps_per_epoch()))));
}

data::Layout layout_of(const std::string& name) {
  return name == "auto" ? data::Layout::Packed : data::parse_layout(name);
}

Cut TrainingJob::cut() const {
  return {.micro_batch = job.split.micro_batch,
          .micro_tokens = job.split.micro_tokens,
          .layout = layout_of(job.options.layout),
          .checkpointing = parse_checkpointing(job.options.checkpointing)};
}

}  // namespace batchwright::engine
