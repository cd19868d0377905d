#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/text_rows.h"

namespace batchwright::data {

// What a data set asks of a model: decides the reader, the labels, the head, the loss and the metric.
enum class Task { SequenceClassification, TokenClassification, QuestionAnswering, CausalLm };

// "sequence-classification", "token-classification", "question-answering", "causal-lm"; parsing also takes
// the short "sequence", "token", "qa". Throws Usage naming `subject`.
Task parse_task(std::string_view text, const std::string& subject);
std::string task_name(Task task);

// The task that a data file speaks of: by its ending (.csv and .tsv: sequence; .conll, .bio, .iob, .iob2:
// token; .txt: causal-lm), or, for JSON, by its first row ("prompt" and "completion", or nothing but a text:
// causal-lm; else sequence) and by SQuAD's "data" (qa). Throws NotFound, or Unsupported for another ending.
Task deduce_task(const std::filesystem::path& data, const ColumnNames& columns);

}  // namespace batchwright::data
