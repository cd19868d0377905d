#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace batchwright::cli {

// One verb of the command line. `add` gives `app` (already named and described) its options and a callback
// that does the work, prints results to stdout and sets `exit_code`. What it throws (Error) is printed by
// cli.cc. Every option must stand in docs/<name>.md, which is what --help prints: tests/cli/docs_test.cc
// compares them.
struct Verb {
  std::string_view name;
  std::string_view summary;
  void (*add)(CLI::App& app, int& exit_code);
};

// In the order in which `batchwright --help` lists them. A verb registers itself by a line in cli.cc.
const std::vector<Verb>& verbs();

// Usage: `word` is none of the options of `app`; the hint is the option that it is near to, else `otherwise`.
Error unknown_option(const CLI::App& app, const std::string& word, const std::string& otherwise);

}  // namespace batchwright::cli
