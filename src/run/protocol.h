#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "base/json.h"
#include "run/evidence.h"

namespace batchwright::run {

// The workload protocol: JSON lines over a Unix-domain socket whose path is in the environment variable
// BATCHWRIGHT_SOCKET. The tuner listens, every worker (rank) connects. Each message is one object with a
// "type"; unknown fields are ignored, unknown types are an error. Bytes are integers, times are seconds.
inline constexpr int kProtocolVersion = 1;
inline constexpr double kMostSeconds = 1e12;  // that a message or a record may hold

// ---- worker to tuner
struct Hello {
  int protocol = kProtocolVersion;
  std::string framework;  // "batchwright-engine 0.1.0, libtorch 2.13.0"
  std::string device;     // "cpu, 2 threads"
  bool can_resplit = false;
  std::int64_t process_id = 0;
  int rank = 0, world_size = 1;
};
// One optimizer step that is finished. Unknown values are null on the wire.
struct StepReport {
  std::int64_t step = 0;  // 1-based within the trial or the run
  std::int64_t micro_steps = 0, examples = 0, tokens = 0, padded_tokens = 0;
  double seconds = 0;
  std::map<std::string, double> phases;  // input, forward, loss, backward, optimizer, collective, residual
  std::optional<double> loss, grad_norm, learning_rate;
  std::optional<std::int64_t> peak_bytes;  // since the trial began
  // On a device that works asynchronously: the host's seconds to enqueue a phase. As long as the phase
  // itself: it is bound by launches. Empty elsewhere.
  std::map<std::string, double> enqueue;
  std::optional<StepEvidence> evidence;  // while `verify` runs a user's script
  std::optional<double> loss_scale;      // fp16 only
  bool skipped = false;                  // the gradient overflowed: the weights stayed as they were
  int rank = 0, world_size = 1;
};
// The running trial failed; the worker is still there. kind: "out_of_memory", "rejected", "error". lost_peer:
// another rank died, hangs or cannot be reached, and this process ends.
inline constexpr const char* kLostPeer = "lost_peer";
struct Failed {
  std::string kind, message;
  std::optional<std::int64_t> peak_bytes;
  int rank = 0, world_size = 1;
};
// The trial or the run is finished. `result` carries a train run's summary.
struct Done {
  Json result;
  int rank = 0, world_size = 1;
};
// Long work without steps (loading, evaluating): shown on the progress line. fraction in [0, 1] when known.
// From rank 0 alone, as orders go to rank 0 alone: neither names a rank.
struct Note {
  std::string text;
  std::optional<double> fraction;
};

// ---- tuner to worker
// Run `steps` optimizer steps with this split. batch: "sampled" takes windows first_step, first_step + 1, ...
// of the seeded sampler, the same for every split; "longest" takes the longest examples of the data for every
// step. micro * accum examples make a step: a memory probe asks for fewer micro-batches than training would
// run, because the peak of the second micro-batch (gradients are there already) is that of all later ones.
struct RunSplit {
  std::int64_t micro = 0, accum = 0, steps = 0, first_step = 0;
  std::string batch = "sampled";
  std::string layout = "auto", checkpointing = "none";
  std::int64_t micro_tokens = 0;  // > 0: a token cut; micro and accum are 0 then
};
struct Stop {};

using Message = std::variant<Hello, StepReport, Failed, Done, Note, RunSplit, Stop>;

std::string to_line(const Message& message);  // without the newline
// Throws InvalidInput with what is wrong; never on unknown fields.
Message parse_message(std::string_view line);

}  // namespace batchwright::run
