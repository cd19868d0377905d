#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/print_explanation.h"
#include "cli/verbs.h"
#include "run/run_folder.h"
#include "tune/decision.h"
#include "tune/device_calibration.h"
#include "tune/splits.h"

namespace batchwright::cli {
namespace {

struct ExplainArguments {
  std::string run;
  bool json = false;
};

// A number for a command of the user's, a list for our engine.
std::vector<std::int64_t> recorded_devices(const JsonFields& request, const std::string& run) {
  const Json* devices = request.find("devices");
  if (devices == nullptr || !devices->is_array()) return {request.integer("devices", 1, 1 << 20, 1)};
  std::vector<std::int64_t> numbers;
  for (const Json& number : *devices) {
    if (!number.is_number_integer() || number < 1 || number > (1 << 20)) {
      throw Error(ErrorKind::InvalidInput, run + "/run.json", "\"devices\" must hold numbers of devices");
    }
    numbers.push_back(number.get<std::int64_t>());
  }
  if (numbers.empty()) numbers.push_back(1);
  return numbers;
}

// A training that found its split keeps the tuning in a folder of its own.
std::string tuned_folder(const std::string& run) {
  const std::filesystem::path inner = std::filesystem::path(run) / "tune";
  std::error_code ignored;
  return std::filesystem::exists(inner / "run.json", ignored) ? inner.string() : run;
}

int explain_run(const ExplainArguments& arguments) {
  const run::RunFolder folder = run::RunFolder::open(arguments.run);
  const JsonFields request(folder.request(), arguments.run + "/run.json");
  const Json* options = request.find("options");
  if (options == nullptr || !options->is_object()) {
    throw Error(ErrorKind::InvalidInput, arguments.run + "/run.json", "names no options",
                "Give the folder of a `batchwright tune`");
  }
  const std::int64_t effective_batch =
      JsonFields(*options, arguments.run + "/run.json").integer("effective_batch", 1, 1 << 24);
  tune::SearchOptions search;
  search.effective_batch = effective_batch;
  search.exhaustive = request.boolean("exhaustive", false);
  const tune::Candidates candidates = tune::candidate_splits(
      effective_batch, recorded_devices(request, arguments.run), request.boolean("allow_inexact", false));
  search.starts_are_dear = request.find("command") != nullptr;  // a script of the user's
  search.probe_longest = !search.starts_are_dear;
  const auto calibration = tune::calibration_for(folder.facts());
  const tune::Decision decision =
      tune::decide(search, candidates.splits, folder.trials(), 0, "", calibration ? &*calibration : nullptr);
  if (!decision.recommended) {
    throw Error(ErrorKind::No, arguments.run, "holds no measured split, so there is nothing to explain",
                "Give the folder of a `batchwright tune`, or of a training that found its split");
  }
  if (arguments.json) {
    Json document = tune::to_json(decision.explanation);
    document["version"] = 1;
    document["recommended"] = run::to_string(decision.trials[*decision.recommended].split);
    fmt::print("{}\n", dump_line(document));
  } else {
    fmt::print("{}", describe(decision.explanation, decision.trials[*decision.recommended].split));
  }
  return 0;
}

}  // namespace

void add_explain_verb(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ExplainArguments>();
  app.add_option("RUN", arguments->run);
  app.add_flag("--json", arguments->json);
  app.callback([&exit_code, arguments] {
    if (arguments->run.empty()) {
      throw Error(ErrorKind::Usage, "batchwright explain", "needs RUN, the folder of a `batchwright tune`");
    }
    arguments->run = tuned_folder(arguments->run);
    exit_code = explain_run(*arguments);
  });
}

}  // namespace batchwright::cli
