#include "engine/step_log.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace batchwright::engine {
namespace {

Json line_of(const run::StepReport& report) {
  // JSON has no infinities: the norm of a gradient that overflowed is null.
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json line = {{"step", report.step},
               {"loss", finite(*report.loss)},
               {"learning_rate", *report.learning_rate},
               {"grad_norm", finite(*report.grad_norm)},
               {"examples", report.examples},
               {"tokens", report.tokens},
               {"padded_tokens", report.padded_tokens},
               {"micro_steps", report.micro_steps},
               {"seconds", report.seconds},
               {"phases", report.phases},
               {"peak_bytes", *report.peak_bytes}};
  if (report.loss_scale) {
    line["loss_scale"] = *report.loss_scale;
    line["skipped"] = report.skipped;
  }
  return line;
}

}  // namespace

StepLog::StepLog(std::filesystem::path path, std::int64_t kept_steps) : path_(std::move(path)) {
  std::string kept;
  if (kept_steps > 0) {
    const std::string former = read_file(path_);
    std::string_view rest = former;
    for (std::int64_t step = 0; step < kept_steps; ++step) {
      const auto end = rest.find('\n');
      if (end == std::string_view::npos) {
        throw Error(ErrorKind::InvalidInput, path_.string(), "holds fewer steps than the checkpoint",
                    "Name another folder with --run, or give --overwrite to replace it");
      }
      add(parse_json(rest.substr(0, end), path_.string()));
      rest.remove_prefix(end + 1);
    }
    kept = former.substr(0, former.size() - rest.size());
  }
  write_file_atomic(path_, kept);
  file_ = std::fopen(path_.c_str(), "ae");
  if (file_ == nullptr) throw Error(ErrorKind::InvalidInput, path_.string(), "cannot be written");
}

StepLog::~StepLog() { std::fclose(file_); }

void StepLog::write(const run::StepReport& report) {
  const Json line = line_of(report);
  add(line);
  if (std::fputs((dump_line(line) + "\n").c_str(), file_) < 0 || std::fflush(file_) != 0) {
    throw Error(ErrorKind::InvalidInput, path_.string(), "cannot be written (is the disk full?)");
  }
}

void StepLog::add(const Json& line) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  const JsonFields fields(line, path_.string());
  ++totals_.steps;
  totals_.examples += fields.integer("examples", 0, kMost);
  totals_.tokens += fields.integer("tokens", 0, kMost);
  totals_.padded_tokens += fields.integer("padded_tokens", 0, kMost);
  totals_.peak_bytes = std::max(totals_.peak_bytes, fields.integer("peak_bytes", 0, kMost));
  totals_.seconds += fields.number("seconds", 0, 1e12);
  totals_.skipped += fields.boolean("skipped", false) ? 1 : 0;
  if (const auto loss = fields.maybe_number("loss", -1e300, 1e300)) totals_.last_loss = *loss;
}

}  // namespace batchwright::engine
