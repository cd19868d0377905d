#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/prepare.h"
#include "data/task.h"

namespace batchwright::data {

// What a data file holds, read and checked, in the form that the Python module tokenises.
struct Examples {
  std::string lines;                     // JSON lines, as python/batchwright/examples.py describes them
  std::int64_t count = 0;                // examples in them: rows, sentences, questions, texts
  std::vector<std::string> label_names;  // class -> name: becomes the saved model's id2label
  bool pairs = false;                    // sequence classification of two texts
  bool plain = false;                    // lines of a plain text, for a language model
  std::function<std::int64_t(std::int64_t)> line_of;  // of an example, in the data file
};

// Throws NotFound, Unsupported or InvalidInput, the last with "path:line".
Examples read_examples(const PrepareRequest& request, Task task, const std::vector<std::string>& model_names);

}  // namespace batchwright::data
