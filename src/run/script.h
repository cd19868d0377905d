#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/options.h"

namespace batchwright::run {

// One key of a YAML or JSON file that gets another value in a copy: `--set-in train.yaml
// trainer.batch={micro}`.
struct ConfigEdit {
  std::filesystem::path file;
  std::string key;    // dotted
  std::string value;  // may hold placeholders; read as YAML, so 8 is a number and "8" a string
};

// A user's training command, to be run unchanged but for its placeholders.
struct ScriptCommand {
  std::vector<std::string> words = {};
  std::vector<ConfigEdit> edits = {};
  std::string steps_argument = {};  // `--max_steps`, or a text with {steps}; empty: the hook counts the steps
  bool online = false;              // leave trackers and hubs as the environment has them
};

// What the placeholders {micro}, {accum}, {effective}, {devices}, {scratch} and {steps} stand for.
struct PlaceholderValues {
  Split split;
  std::filesystem::path scratch;
  std::int64_t steps = 0;
};
std::string fill_in(std::string text, const PlaceholderValues& values);

// Throws Usage when {micro} stands nowhere (arguments, environment, edits), when a file to edit cannot be
// read or lacks the key, and when running the command again would write into a folder that has something in
// it (an argument or a configuration key that names an output folder without {scratch}).
void check_script(const ScriptCommand& script);

// The command of one trial: placeholders filled in, edited copies of configuration files written into
// `scratch` and named in their place.
struct ScriptInvocation {
  std::vector<std::string> words;
  std::map<std::string, std::optional<std::string>> environment;
};
ScriptInvocation prepare_invocation(const ScriptCommand& script, const PlaceholderValues& values);

// A copy of a YAML or JSON text in which one dotted key has another value. Throws Usage naming `subject`.
std::string with_value(const std::string& text, const std::string& key, const std::string& value,
                       const std::string& subject);

}  // namespace batchwright::run
