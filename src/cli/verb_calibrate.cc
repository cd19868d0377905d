#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/cores.h"
#include "base/error.h"
#include "base/process.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "data/python.h"
#include "hardware/calibration.h"

namespace batchwright::cli {
namespace {

struct CalibrateOptions {
  int threads = 0;
  std::string budget = "20s";
  bool json = false;
};

hardware::Calibration measure(const CalibrateOptions& options) {
  const double seconds = parse_seconds(options.budget, "--budget");
  if (seconds < 1 || seconds > 600) throw Error(ErrorKind::Usage, "--budget", "must lie between 1s and 10m");
  const int threads = options.threads > 0 ? options.threads : usable_cores();
  ProcessOptions process;
  process.command = {data::python_interpreter(), "-m",        "batchwright.calibrate",       "--threads",
                     std::to_string(threads),    "--seconds", fmt::format("{:.3f}", seconds)};
  if (const auto folder = data::python_folder(); !folder.empty())
    process.environment["PYTHONPATH"] = folder.string();
  const CapturedOutput output =
      run_captured(process, std::chrono::seconds(static_cast<long>(seconds) * 4 + 60));
  if (output.timed_out || !output.status.succeeded()) {
    throw Error(ErrorKind::NotFound, data::python_interpreter() + " -m batchwright.calibrate",
                output.timed_out ? "took too long" : last_line(output.text),
                "BATCHWRIGHT_PYTHON names the Python to use; it needs torch");
  }
  Json document = parse_json(last_line(output.text, 1 << 20), "batchwright.calibrate");
  document["processor"] = hardware::processor_name();
  document["threads"] = threads;
  document["memory_bytes"] = hardware::machine_memory_bytes();
  return hardware::calibration_from_json(document, "batchwright.calibrate");
}

std::string text_of(const hardware::Calibration& calibration) {
  std::map<std::int64_t, double> best;  // rows -> the best rate of its shapes
  for (const hardware::ProductTiming& p : calibration.products)
    best[p.rows] = std::max(best[p.rows], p.flops());
  Table table({{"rows", Align::Right}, {"GFLOP/s a thread", Align::Right}, {"of best", Align::Right}});
  for (const auto& [rows, flops] : best) {
    table.add_row({fmt::format("{}", rows), fmt::format("{:.1f}", flops / 1e9),
                   format_percent(flops / calibration.best_flops(), 0)});
  }
  return fmt::format(
      "{}, {} threads, measured with {}\n\n{}\nmemory bandwidth {:.1f} GB/s, one small operation {}\nstored "
      "in {}\n",
      calibration.processor, calibration.threads, calibration.measured_by, table.to_string(),
      calibration.bandwidth_bytes_per_second / 1e9, format_seconds(calibration.operation_seconds),
      hardware::calibration_path().string());
}

}  // namespace

void add_calibrate_verb(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CalibrateOptions>();
  app.add_option("--threads", options->threads)->check(CLI::Range(1, 4096));
  app.add_option("--budget", options->budget);
  app.add_flag("--json", options->json);
  app.callback([options, &exit_code] {
    const hardware::Calibration calibration = measure(*options);
    hardware::store_calibration(calibration);
    if (options->json) {
      fmt::print("{}\n", dump_line(hardware::to_json(calibration)));
    } else {
      fmt::print("{}", text_of(calibration));
    }
    exit_code = 0;
  });
}

}  // namespace batchwright::cli
