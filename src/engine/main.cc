#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "base/error.h"
#include "engine/memory.h"
#include "engine/trainer.h"
#include "engine/trials.h"
#include "engine/verify.h"

namespace batchwright::engine {
namespace {

void run_job(const run::EngineJob& job, run::WorkerChannel& channel) {
  switch (job.mode) {
    case run::JobMode::Trials:
      return serve_trials(job, channel);
    case run::JobMode::Train:
      return train(job, channel);
    case run::JobMode::Dump:
      return dump(job, channel);
    case run::JobMode::Verify:
      return verify(job, channel);
  }
}

int run(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    fmt::print("batchwright-engine {}, protocol {}\n", BATCHWRIGHT_VERSION, run::kProtocolVersion);
    return 0;
  }
  if (argc != 2) {
    throw Error(ErrorKind::Usage, "batchwright-engine", "takes one argument, a job file",
                "It is started by `batchwright tune` and `batchwright train`");
  }
  const run::EngineJob job = run::engine_job_from_json(read_json_file(argv[1]), argv[1]);
  run::WorkerChannel channel = run::WorkerChannel::from_environment();
  install_memory_counter(job.options.memory_limit_bytes);
  try {
    run_job(job, channel);
  } catch (const Error& e) {
    // The tuner prints it: to it, what happened here is one line with a kind.
    channel.send(run::Failed{.kind = std::string(error_kind_name(e.kind())),
                             .message = e.what(),
                             .peak_bytes = memory_counts().peak_bytes});
    throw;
  }
  return 0;
}

}  // namespace
}  // namespace batchwright::engine

int main(int argc, char** argv) {
  using namespace batchwright;
  try {
    return engine::run(argc, argv);
  } catch (const Error& e) {
    fmt::print(stderr, "batchwright-engine: {}\n", e.what());
    return exit_code(e.kind());
  } catch (const std::exception& e) {
    fmt::print(stderr, "batchwright-engine: internal fault: {}\n", e.what());
    return exit_code(ErrorKind::Internal);
  }
}
