#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "data/task.h"
#include "data/text_rows.h"

namespace batchwright::data {

struct PrepareRequest {
  std::filesystem::path data;          // see read_text_rows
  std::filesystem::path model_folder;  // its tokenizer.json tokenises, its config.json may name the classes
  ColumnNames columns;
  std::optional<Task> task = std::nullopt;  // empty: see deduce_task
  std::int32_t max_length = 128;            // tokens of a row, special tokens included; longer rows are cut
  std::optional<std::int32_t> doc_stride =
      std::nullopt;  // question answering: tokens that neighbouring windows share
  std::optional<bool> packing =
      std::nullopt;  // language models: texts one after the other in blocks of max_length tokens
  std::filesystem::path cache_folder;  // empty: default_cache_folder()
};

struct Prepared {
  std::filesystem::path token_file;  // opens with TokenFile::open
  bool from_cache = false;
  Task task = Task::SequenceClassification;
};

// Called several times a second while rows are tokenised; it may throw to stop the work.
using PrepareProgress = std::function<void(std::int64_t rows_done, std::int64_t rows)>;

// The token file of a data set: from the cache when everything it depends on (the data's bytes, the
// tokenizer's, the task, max_length and what else is asked for, the model's class names, the format) has the
// same hash as then, else made
// by the project's Python module batchwright.prepare. Throws NotFound, InvalidInput (naming path:line where a
// row is at fault) or Unsupported; nothing half-written stays behind.
Prepared prepare(const PrepareRequest& request, const PrepareProgress& progress = {});

// BATCHWRIGHT_CACHE, else XDG_CACHE_HOME/batchwright, else ~/.cache/batchwright.
std::filesystem::path default_cache_folder();

}  // namespace batchwright::data
