#include "run/script.h"

#include <fmt/format.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

extern char** environ;

namespace batchwright::run {
namespace {

constexpr std::int64_t kMostConfigBytes = 4 << 20;

bool has_placeholder(const std::string& text, const char* name) {
  return text.find(name) != std::string::npos;
}

std::map<std::string, std::string> environment_with_placeholders() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    for (const char* name : {"{micro}", "{accum}", "{effective}", "{devices}", "{scratch}"}) {
      if (has_placeholder(text, name)) result[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return result;
}

std::vector<std::string> parts_of(const std::string& key) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = key.find('.', begin);
    parts.push_back(key.substr(begin, dot - begin));
    if (dot == std::string::npos) return parts;
    begin = dot + 1;
  }
}

Error missing_key(const std::string& key, const std::string& part, const std::string& subject) {
  return Error(ErrorKind::Usage, subject, fmt::format("has no key '{}' ('{}' is missing)", key, part),
               "--set-in changes keys that are there");
}

// yaml-cpp's nodes are handles: assigning to one changes the tree, so the walk recurses instead of
// reassigning.
void set_value(YAML::Node node, std::span<const std::string> parts, const YAML::Node& value,
               const std::string& key, const std::string& subject) {
  if (!node.IsMap() || !node[parts.front()]) {
    throw missing_key(key, parts.front(), subject);
  }
  if (parts.size() == 1) {
    node[parts.front()] = value;
  } else {
    set_value(node[parts.front()], parts.subspan(1), value, key, subject);
  }
}

std::string json_with_value(const std::string& text, std::span<const std::string> parts,
                            const std::string& key, const std::string& value, const std::string& subject) {
  Json root = parse_json(text, subject);
  Json* at = &root;
  for (const std::string& part : parts) {
    if (!at->is_object() || !at->contains(part)) throw missing_key(key, part, subject);
    at = &at->at(part);
  }
  try {
    *at = parse_json(value, subject);
  } catch (const Error&) {
    *at = value;  // not a number, true, false, null or a quoted text: the text itself
  }
  return root.dump(2) + "\n";
}

// Names under which scripts and frameworks take the folder that they write to.
bool names_an_output(std::string name) {
  static constexpr std::array<std::string_view, 32> kNames = {
      "output_dir",  "out_dir",        "outdir",          "output",           "output_path",
      "save_dir",    "save_path",      "ckpt_dir",        "log_dir",          "logdir",
      "logging_dir", "run_dir",        "work_dir",        "workdir",          "result_dir",
      "results_dir", "checkpoint_dir", "checkpoints_dir", "default_root_dir", "o",
      "out",         "out_path",       "out_folder",      "outputs",          "output_folder",
      "save_folder", "save_to",        "exp_dir",         "experiment_dir",   "log_folder",
      "results",     "artifacts_dir"};
  name.erase(0, name.find_first_not_of('-'));
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void refuse_used_folder(const std::string& where, const std::string& value, const std::string& instead) {
  if (value.empty() || has_placeholder(value, "{scratch}")) return;
  std::error_code error;
  if (!std::filesystem::is_directory(value, error) || std::filesystem::is_empty(value, error)) return;
  throw Error(
      ErrorKind::Usage, where,
      fmt::format("names the folder '{}', which has something in it, and every trial would write there",
                  value),
      instead);
}

void check_arguments(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (!names_an_output(name)) continue;
    if (equals != std::string::npos) {
      refuse_used_folder(name, word.substr(equals + 1), fmt::format("Write {}={{scratch}}", name));
    } else if (word.front() == '-' && i + 1 < words.size()) {
      refuse_used_folder(name, words[i + 1], fmt::format("Write {} {{scratch}}", name));
    }
  }
}

bool is_config_file(const std::string& word) {
  const std::string extension = std::filesystem::path(word).extension().string();
  std::error_code error;
  return (extension == ".yaml" || extension == ".yml" || extension == ".json") &&
         std::filesystem::is_regular_file(word, error) &&
         std::filesystem::file_size(word, error) <= static_cast<std::uintmax_t>(kMostConfigBytes);
}

void check_config_node(const YAML::Node& node, const std::string& path, const std::string& file,
                       const ScriptCommand& script, int depth) {
  if (!node.IsMap() || depth > 20) return;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) continue;
    const std::string name = entry.first.Scalar();
    const std::string key = path.empty() ? name : path + "." + name;
    if (entry.second.IsMap()) check_config_node(entry.second, key, file, script, depth + 1);
    if (!entry.second.IsScalar() || !names_an_output(name)) continue;
    const bool edited = std::any_of(script.edits.begin(), script.edits.end(), [&](const ConfigEdit& edit) {
      return edit.file == file && edit.key == key;
    });
    if (edited) continue;
    refuse_used_folder(fmt::format("{} in {}", key, file), entry.second.Scalar(),
                       fmt::format("Write --set-in {} {}={{scratch}}", file, key));
  }
}

void check_config_files(const ScriptCommand& script) {
  for (const std::string& word : script.words) {
    const std::string value = word.substr(word.find('=') == std::string::npos ? 0 : word.find('=') + 1);
    if (!is_config_file(value)) continue;
    try {
      check_config_node(YAML::Load(read_file(value, kMostConfigBytes)), "", value, script, 0);
    } catch (const YAML::Exception&) {
      // Not a file that we can read: the script may still.
    }
  }
}

}  // namespace

std::string fill_in(std::string text, const PlaceholderValues& values) {
  const std::map<std::string, std::string> replacements = {
      {"{micro}", std::to_string(values.split.micro_batch)},
      {"{accum}", std::to_string(values.split.accumulation_steps)},
      {"{effective}", std::to_string(values.split.effective_batch())},
      {"{devices}", std::to_string(values.split.devices)},
      {"{scratch}", values.scratch.string()},
      {"{steps}", std::to_string(values.steps)}};
  for (const auto& [name, value] : replacements) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size())) {
      text.replace(at, name.size(), value);
    }
  }
  return text;
}

std::string with_value(const std::string& text, const std::string& key, const std::string& value,
                       const std::string& subject) {
  const std::vector<std::string> parts = parts_of(key);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  // YAML would read JSON too, but write what stricter readers refuse.
  if (first != std::string::npos && text[first] == '{')
    return json_with_value(text, parts, key, value, subject);
  try {
    const YAML::Node root = YAML::Load(text);
    set_value(root, parts, YAML::Load(value), key, subject);
    YAML::Emitter out;
    out << root;
    return std::string(out.c_str()) + "\n";
  } catch (const YAML::Exception& e) {
    throw Error(ErrorKind::Usage, subject, std::string("cannot be read as YAML or JSON (") + e.what() + ")");
  }
}

void check_script(const ScriptCommand& script) {
  if (script.words.empty()) {
    throw Error(
        ErrorKind::Usage, "--", "needs a command after it",
        "Write: batchwright tune --effective-batch 64 -- python train.py --batch {micro} --accum {accum}");
  }
  const auto uses_micro = [](const std::string& text) { return has_placeholder(text, "{micro}"); };
  bool used = std::any_of(script.words.begin(), script.words.end(), uses_micro);
  for (const ConfigEdit& edit : script.edits) used = used || uses_micro(edit.value);
  for (const auto& [name, value] : environment_with_placeholders()) used = used || uses_micro(value);
  if (!used) {
    throw Error(
        ErrorKind::Usage, "the command", "has no {micro}, so it would run the same split every time",
        "Put {micro} and {accum} where the command takes its micro-batch size and accumulation steps");
  }
  for (const ConfigEdit& edit : script.edits) {
    with_value(read_file(edit.file, kMostConfigBytes), edit.key, "0", edit.file.string());
    const bool named = std::any_of(script.words.begin(), script.words.end(), [&](const std::string& word) {
      return word.find(edit.file.string()) != std::string::npos;
    });
    if (!named) {
      throw Error(ErrorKind::Usage, "--set-in",
                  fmt::format("the command does not name '{}'", edit.file.string()),
                  "Write the path as it stands in the command");
    }
  }
  check_arguments(script.words);
  check_config_files(script);
}

ScriptInvocation prepare_invocation(const ScriptCommand& script, const PlaceholderValues& values) {
  ScriptInvocation invocation;
  std::map<std::string, std::string> copies;  // original path -> the edited copy
  for (const ConfigEdit& edit : script.edits) {
    const std::string original = edit.file.string();
    const std::filesystem::path copy =
        values.scratch / ("config-" + content_hash(original).substr(0, 8)) / edit.file.filename();
    const std::string text = read_file(copies.contains(original) ? copy : edit.file, kMostConfigBytes);
    write_file_atomic(copy, with_value(text, edit.key, fill_in(edit.value, values), original));
    copies[original] = copy.string();
  }
  for (std::string word : script.words) {
    for (const auto& [original, copy] : copies) {
      if (const std::size_t at = word.find(original); at != std::string::npos)
        word.replace(at, original.size(), copy);
    }
    invocation.words.push_back(fill_in(word, values));
  }
  if (!script.steps_argument.empty() && values.steps > 0) {
    invocation.words.push_back(fill_in(script.steps_argument, values));
    if (!has_placeholder(script.steps_argument, "{steps}"))
      invocation.words.push_back(std::to_string(values.steps));
  }
  for (const auto& [name, value] : environment_with_placeholders()) {
    invocation.environment[name] = fill_in(value, values);
  }
  if (!script.online) {
    invocation.environment["WANDB_MODE"] = "disabled";
    invocation.environment["HF_HUB_OFFLINE"] = "1";
  }
  return invocation;
}

}  // namespace batchwright::run
