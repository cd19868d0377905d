#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/training_arguments.h"
#include "run/script_runner.h"

namespace batchwright::cli {

// What tune and verify read for a command of the user's, after `--`.
struct ScriptArguments {
  std::string devices;  // "2"; a list, "1,2", for tune with our engine
  std::vector<std::string> set_in;
  std::string steps_argument;
  bool online = false;
};

// Declares --devices, --set-in and --online; the storage must outlive the parse.
void add_script_options(CLI::App& app, ScriptArguments& arguments);

// The numbers of a list "1,2,4", each once; {1} when it is empty. Throws Usage naming --devices.
std::vector<std::int64_t> devices_of(const std::string& text);
// The one number that a command of the user's takes. Throws Usage when there are more.
std::int64_t one_device_count(const std::string& text);

// Throws Usage naming an option that only our engine understands, given with a command; `allowed` are the
// verb's own beside those that every command takes.
void refuse_training_options(const CLI::App& app, const std::set<std::string>& allowed);
// Throws Usage naming one of `names` that was given without a command.
void refuse_script_options(const CLI::App& app, const std::vector<std::string>& names);

// Throws Usage when --set-in is not FILE KEY=VALUE.
run::ScriptCommand script_command(const TrainingArguments& training, const ScriptArguments& arguments);

// Everything that decides what the command computes and that we can see: the same request continues the same
// run.
Json request_of(const std::string& verb, const run::ScriptCommand& script, std::int64_t devices);

// Versions of the libraries that decide how fast a training script runs, in the Python that runs the command:
// its first word, or the one that lies beside it (torchrun). Empty when there is none.
Json library_versions(const std::vector<std::string>& words);

// Brings the hook into the script's Python. Throws NotFound.
void use_hook(run::ScriptSettings& settings);

}  // namespace batchwright::cli
