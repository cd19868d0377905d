#include "cli/prepared_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/labels.h"
#include "data/prepare.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "model/config.h"

namespace batchwright::cli {
namespace {

// What a row of the token file is to a person.
std::string row_word(data::Task task) {
  switch (task) {
    case data::Task::SequenceClassification:
      return "rows";
    case data::Task::TokenClassification:
      return "sentences";
    case data::Task::QuestionAnswering:
      return "windows of contexts";
    case data::Task::CausalLm:
      return "texts or blocks";
  }
  return "rows";
}

// Other weights under the same name must not be taken for these: a resumed adapter would go on over a base
// that it never saw.
std::string weights_hash(const std::filesystem::path& folder) {
  const std::filesystem::path single = folder / "model.safetensors";
  std::error_code error;
  if (std::filesystem::exists(single, error)) return sampled_hash(single);
  std::vector<std::string> shards;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors")
      shards.push_back(entry.path().filename().string() + sampled_hash(entry.path()));
  }
  std::sort(shards.begin(), shards.end());
  return content_hash(fmt::format("{}", fmt::join(shards, " ")));
}

// An option of another task would change nothing, and its user thinks it does.
void refuse_unused_options(data::Task task, const TrainingArguments& arguments) {
  if (arguments.doc_stride && task != data::Task::QuestionAnswering) {
    throw Error(ErrorKind::Usage, "--doc-stride",
                "is for question-answering, and this is " + data::task_name(task));
  }
  if (arguments.packing && task != data::Task::CausalLm) {
    throw Error(ErrorKind::Usage, "--packing", "is for causal-lm, and this is " + data::task_name(task));
  }
}

// 0.5, 1.5: scores, which a person would rather have as numbers than as the names of classes.
bool are_decimals(const std::vector<std::string>& names) {
  return !names.empty() && std::all_of(names.begin(), names.end(), [](const std::string& name) {
    double value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    return error == std::errc() && end == name.data() + name.size() && name.find('.') != std::string::npos;
  });
}

}  // namespace

PreparedInput prepare_input(const ModelAndData& input, const TrainingArguments& arguments,
                            const InterruptGuard& interrupt, Progress& progress) {
  if (!std::filesystem::is_directory(input.model)) {
    throw Error(ErrorKind::NotFound, input.model, "is not a folder",
                "MODEL is a folder with config.json, model.safetensors and tokenizer.json; "
                "`hf download NAME --local-dir FOLDER` fetches one from the Hugging Face Hub");
  }
  model::read_model_config(input.model);
  data::PrepareRequest request;
  request.data = input.data;
  request.model_folder = input.model;
  request.columns = {arguments.text_column, arguments.text_pair_column, arguments.label_column};
  request.task = arguments.task;
  request.doc_stride = arguments.doc_stride;
  request.packing = arguments.packing;
  request.max_length = static_cast<std::int32_t>(arguments.options.max_length);
  const data::Prepared prepared = data::prepare(request, [&](std::int64_t done, std::int64_t rows) {
    interrupt.check();
    progress.update(
        fmt::format("tokenising {} rows", rows),
        rows > 0 ? std::optional(static_cast<double>(done) / static_cast<double>(rows)) : std::nullopt);
  });
  const data::TokenFile tokens = data::TokenFile::open(prepared.token_file);
  refuse_unused_options(tokens.task(), arguments);
  if (!arguments.task)
    progress.note(fmt::format("task: {} (--task names another)", data::task_name(tokens.task())));
  if (tokens.skipped_rows() > 0) {
    progress.note(fmt::format("{} rows have no label within --max-length {} and are left out",
                              tokens.skipped_rows(), tokens.max_length()));
  }
  if (are_decimals(tokens.label_names())) {
    progress.note(
        fmt::format("warning: the labels {} are decimal numbers, and each is taken as the name of a class: a "
                    "classification is trained, not a regression",
                    data::some_of(tokens.label_names())));
  }
  const auto rows = data::split_rows(tokens, arguments.options.eval_fraction, arguments.options.seed);
  const auto training_rows = static_cast<std::int64_t>(rows.train.size());
  if (training_rows < arguments.options.effective_batch) {
    throw Error(ErrorKind::Usage, "--effective-batch",
                fmt::format("{} is more than the {} {} that are left for training",
                            arguments.options.effective_batch, training_rows, row_word(tokens.task())),
                "Give more rows, a smaller effective batch, or a smaller --eval-fraction");
  }
  return {.model_folder = std::filesystem::absolute(input.model),
          .token_file = std::filesystem::absolute(prepared.token_file),
          .content_id = tokens.content_id(),
          .training_rows = training_rows,
          .lengths = data::length_statistics(data::row_lengths(tokens))};
}

std::int64_t planned_steps(const run::TrainingOptions& options, std::int64_t training_rows) {
  if (options.steps) return *options.steps;
  const std::int64_t per_epoch = (training_rows + options.effective_batch - 1) / options.effective_batch;
  return std::max<std::int64_t>(1, std::llround(std::ceil(options.epochs * static_cast<double>(per_epoch))));
}

Json request_of(const std::string& verb, const PreparedInput& input, const run::TrainingOptions& options) {
  return {{"verb", verb},
          {"model", std::filesystem::weakly_canonical(input.model_folder).string()},
          {"model_config", content_hash(read_file(input.model_folder / "config.json"))},
          {"model_weights", weights_hash(input.model_folder)},
          {"data", input.content_id},
          {"options", run::to_json(options)}};
}

std::filesystem::path default_run_folder(const std::string& verb, const Json& request) {
  return std::filesystem::path("batchwright-runs") /
         (verb + "-" + content_hash(dump_line(request)).substr(0, 8));
}

}  // namespace batchwright::cli
