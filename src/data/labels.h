#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/text_rows.h"

namespace batchwright::data {

struct LabelMap {
  std::vector<std::string> names;           // class -> name: becomes the saved model's id2label
  std::vector<std::int32_t> class_of_rows;  // in the order of the rows
};

// Gives every row its class.
// 1. When the model names its classes (`model_names`, see model_label_names) and the rows use them - by name,
// or by
//    whole numbers below their count - the model's order stands.
// 2. Otherwise whole numbers keep their order; they must run without a gap from 0 or from 1.
// 3. Otherwise names are sorted by their bytes.
// Throws InvalidInput, naming `subject`:line, for a label outside the classes or of another kind than the
// rows before, and naming `subject` when there are fewer than two classes or so many that the column is no
// label.
LabelMap map_labels(const TextRows& rows, const std::vector<std::string>& model_names,
                    const std::string& subject);

// The first names of a list, for messages: "a, b, c, ...".
std::string some_of(const std::vector<std::string>& names);

// The classes that config.json's id2label names, in order; empty when it has none, or fewer than two.
// Throws InvalidInput when config.json is not JSON. A folder without config.json has no names.
std::vector<std::string> model_label_names(const std::filesystem::path& model_folder);

}  // namespace batchwright::data
