#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

#include "base/error.h"
#include "engine/cuda_device.h"
#include "engine/memory.h"
#include "engine/process_group.h"
#include "engine/trainer.h"
#include "engine/trials.h"
#include "engine/verify.h"

namespace batchwright::engine {
namespace {

void run_job(const run::EngineJob& job, run::WorkerChannel& channel, ProcessGroup* group) {
  if (group != nullptr && (job.mode == run::JobMode::Dump || job.mode == run::JobMode::Verify)) {
    throw Error(ErrorKind::Unsupported, "WORLD_SIZE",
                "is for training and trials; this job runs in one process");
  }
  switch (job.mode) {
    case run::JobMode::Trials:
      return serve_trials(job, channel, group);
    case run::JobMode::Train:
      return train(job, channel, group);
    case run::JobMode::Dump:
      return dump(job, channel);
    case run::JobMode::Verify:
      return verify(job, channel);
  }
}

// torchrun starts workers without our socket: then rank 0 prints what it would say.
run::WorkerChannel open_channel(const World& world) {
  if (world.launched && !run::WorkerChannel::named_in_environment()) {
    return run::WorkerChannel::printing_to(world.rank == 0 ? stderr : nullptr);
  }
  return run::WorkerChannel::from_environment();
}

// The job's effective batch on the devices that there are.
run::EngineJob on_this_world(run::EngineJob job, const World& world, run::WorkerChannel& channel) {
  if (job.mode != run::JobMode::Train || job.split.devices == world.size) return job;
  const run::Split saved = job.split;
  job.split = run::on_devices(saved, world.size, "WORLD_SIZE");
  if (world.rank == 0 && !saved.is_token_cut()) {
    channel.send(
        run::Note{.text = fmt::format("the job's split {} is for {} device{}, and {} run: {} keeps the "
                                      "effective batch of {}",
                                      run::to_string(saved), saved.devices, saved.devices == 1 ? "" : "s",
                                      world.size, run::to_string(job.split), saved.effective_batch()),
                  .fraction = std::nullopt});
  }
  return job;
}

std::unique_ptr<ProcessGroup> join_group(const run::EngineJob& job, const World& world,
                                         run::WorkerChannel& channel) {
  if (!world.together()) return nullptr;
  const DeviceKind device = job.options.device == "cuda" ? DeviceKind::Cuda : DeviceKind::Cpu;
  return ProcessGroup::join(world, device,
                            [&channel, rank = world.rank, size = world.size](const Error& lost) {
                              fmt::print(stderr, "batchwright-engine: {}\n", lost.what());
                              std::fflush(stderr);
                              try {
                                channel.send(run::Failed{.kind = run::kLostPeer,
                                                         .message = lost.message(),
                                                         .peak_bytes = std::nullopt,
                                                         .rank = rank,
                                                         .world_size = size});
                              } catch (const Error&) {  // the tuner is gone, too
                              }
                            });
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
  const World world = world_from_environment();
  run::EngineJob job = run::engine_job_from_json(read_json_file(argv[1]), argv[1]);
  run::WorkerChannel channel = open_channel(world);
  install_memory_counter(job.options.memory_limit_bytes);
  std::unique_ptr<ProcessGroup> group;
  try {
    job = on_this_world(std::move(job), world, channel);
    if (job.options.device == "cuda") use_cuda_device(world.local_rank);
    group = join_group(job, world, channel);
    run_job(job, channel, group.get());
    if (group != nullptr) group->leave();
  } catch (const Error& e) {
    if (group != nullptr) group->fail(e.what());
    // The tuner prints it: to it, what happened here is one line with a kind.
    channel.send(run::Failed{.kind = std::string(error_kind_name(e.kind())),
                             .message = e.what(),
                             .peak_bytes = memory_counts().peak_bytes,
                             .rank = world.rank,
                             .world_size = world.size});
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
