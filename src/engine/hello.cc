#include "engine/hello.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

namespace batchwright::engine {

std::string torch_version() { return TORCH_VERSION; }

run::Hello hello(bool can_resplit, const Stepper& stepper) {
  const int threads = stepper.threads();
  run::Hello message;
  message.framework = fmt::format("batchwright-engine {}, libtorch {}", BATCHWRIGHT_VERSION, TORCH_VERSION);
  message.device = fmt::format("{}, {} thread{}", stepper.device_name(), threads, threads == 1 ? "" : "s");
  message.can_resplit = can_resplit;
  message.process_id = ::getpid();
  message.rank = stepper.rank();
  message.world_size = stepper.ranks();
  return message;
}

run::StepReport report_of(const StepOutcome& outcome, std::int64_t step, double learning_rate) {
  run::StepReport report;
  report.step = step;
  report.micro_steps = outcome.micro_steps;
  report.examples = outcome.examples;
  report.tokens = outcome.real_tokens;
  report.padded_tokens = outcome.padded_tokens;
  report.seconds = outcome.seconds;
  report.phases = profile::named(outcome.phases);
  report.loss = outcome.loss;
  report.grad_norm = outcome.grad_norm;
  report.learning_rate = learning_rate;
  report.loss_scale = outcome.loss_scale;
  report.skipped = outcome.skipped;
  report.peak_bytes = outcome.whole.most_peak_bytes;
  return report;
}

run::StepReport whole_report_of(const StepOutcome& outcome, std::int64_t step, double learning_rate,
                                int ranks) {
  run::StepReport report = report_of(outcome, step, learning_rate);
  report.examples = outcome.whole.examples;
  report.tokens = outcome.whole.real_tokens;
  report.padded_tokens = outcome.whole.padded_tokens;
  report.world_size = ranks;
  return report;
}

}  // namespace batchwright::engine
