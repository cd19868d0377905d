#include "model/known_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace batchwright::model {

std::string_view data_known_models_jsonl();  // made at build time from known_models.jsonl

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::vector<std::string_view> table_lines() {
  std::vector<std::string_view> lines;
  std::string_view rest = data_known_models_jsonl();
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    if (end != 0) lines.push_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return lines;
}

// Only the line that names the model is parsed: the table would cost half of the start-up time.
const Json* find_line(const std::string& wanted, Json& storage) {
  const std::string quoted = "\"" + wanted + "\"";
  for (const std::string_view line : table_lines()) {
    const std::string_view names = line.substr(0, line.find("\"source\""));
    if (lower(names).find(quoted) == std::string::npos) continue;
    storage = parse_json(line, "known models");
    return &storage;
  }
  return nullptr;
}

bool looks_like_a_path(std::string_view text) {
  std::error_code ignored;
  return text.starts_with(".") || text.starts_with("/") || text.ends_with(".json") ||
         std::filesystem::exists(std::filesystem::path(text), ignored);
}

// Names that go on where the word ends ("llama-3"), which people type more often than slips; else the nearest
// one.
std::string suggestion(const std::string& word) {
  constexpr std::size_t kMost = 6;
  const std::vector<std::string_view> names = known_model_names();
  std::vector<std::string> longer;
  for (const std::string_view name : names) {
    if (name.starts_with(word)) longer.push_back(fmt::format("\"{}\"", name));
  }
  if (longer.empty()) {
    const std::string near = nearest_choice(word, names);
    return near.empty() ? "" : fmt::format("\"{}\"", near);
  }
  if (longer.size() > kMost) longer.resize(kMost);
  return fmt::format("{}", fmt::join(longer, ", "));
}

}  // namespace

std::vector<std::string_view> known_model_names() {
  std::vector<std::string_view> names;
  for (const std::string_view line : table_lines()) {
    constexpr std::string_view kStart = R"({"name":")";
    names.push_back(line.substr(kStart.size(), line.find('"', kStart.size()) - kStart.size()));
  }
  return names;
}

ModelConfig find_model(std::string_view name_or_path) {
  if (name_or_path.empty()) throw Error(ErrorKind::Usage, "model", "is empty", "Name a model or its folder");
  if (looks_like_a_path(name_or_path)) return read_model_config(std::filesystem::path(name_or_path));
  Json storage;
  if (const Json* line = find_line(lower(name_or_path), storage)) {
    return model_config_from_json((*line)["config"], std::string(name_or_path));
  }
  const std::string near = suggestion(lower(name_or_path));
  throw Error(ErrorKind::Usage, "model",
              fmt::format("\"{}\" is neither a folder nor a model of the table", name_or_path.substr(0, 120)),
              near.empty() ? "Give a folder in Hugging Face layout or a config.json"
                           : fmt::format("Did you mean {}? A folder or a config.json works too", near));
}

}  // namespace batchwright::model
