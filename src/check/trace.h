#pragma once

#include <set>
#include <string>
#include <vector>

#include "check/values.h"

namespace batchwright::check {

enum class EventKind {
  Backward,
  Step,
  Zero,
  Clip,
  Unscale,
  SchedulerStep,
  Report,
  Ema,
  Save,
  EpochEnd,
  LoopEnd,
  Divide
};

// One thing that the simulated program did to the training, in the order of execution.
struct Event {
  EventKind kind;
  int line = 0;
  int target = 0;  // optimizer or scheduler; -1: all of them
  int stamp = 0;   // the iteration in which it happened
  Terms terms;  // Backward: the loss. Step: the gradient that it sees. Zero: what is thrown away. Report: the
                // value
  bool no_sync = false;            // Backward: gradients were not exchanged
  bool scaled = false;             // Clip: the gradients still carried the loss scale
  bool clipped = false;            // Backward: adds to gradients that were already clipped
  bool repeated = false;           // Unscale: the second since the last step
  bool in_hook = false;            // Step: from a backward hook
  bool after_backward = false;     // Divide: of a loss whose backward has run
  bool through_scaler = false;     // Step: may be skipped on overflow
  bool explicit_gradient = false;  // Step: on gradients held in variables
  bool truncated = false;          // LoopEnd: the program would go on
  double counter = -1;             // Save, Ema: the value of the counter that was tested
};

struct ScheduleFact {
  double length = -1;  // total steps it was built for; negative: unknown
  std::uint16_t taint = 0;
  std::string length_text;  // its name, where its number is open
  double warmup = -1;
  int line = 0;
  bool prepared = false;
  bool restarts = false;    // the length is that of one cycle of many
  bool fractional = false;  // stepped with a number that tells it where it is
  bool per_epoch = false;   // counts epochs by nature
  std::string name;
};

// The record of one simulated run.
struct Trace {
  std::vector<Event> events;
  std::vector<Symbol> symbols;
  std::vector<ScheduleFact> schedules;
  std::vector<std::string> optimizers;
  std::set<int> owned;           // optimizers whose parameters are known
  double accumulation = 0;       // N as the program used it; 0: it never did
  double loop_window = 0;        // micro-batches of an inner loop without a step
  bool dynamic_windows = false;  // ... whose number varies by design
  bool token_windows = false;    // ... because they end with a number of tokens
  bool micro_loop_named = false;
  bool speaks_of_accumulation = true;  // some function that ran does
  bool window_by_loop = false;         // windows come from an inner loop over micro-batches
  bool unknown_boundary = false;       // a condition that could not be followed decides when to step
  std::string unknown_what;            // ... its text
  bool divides_inside = false;         // the framework divides the loss
  bool used_accumulate = false, used_no_sync = false, used_fsdp = false, saw_context = false, endless = false,
       budget_spent = false;
  bool opaque_zero = false;        // something outside this file may zero gradients
  bool open_flush = false;         // a flag of another file says that an epoch ends ...
  bool flushes = false;            // ... and did so in this run
  int loop_ends = 0;               // training loops that came to an end
  bool open_exchange = false;      // a condition that could not be followed decides where no_sync holds
  bool unentered_context = false;  // `with a() and b()`
  int context_line = 0;            // where accumulate() or no_sync() was entered
  int backward_in_context = 0, backward_outside_context = 0;
  bool trainer = false, lightning = false;  // run inside the framework's own loop
  // Trainer: a base class from elsewhere, which may have the Trainer divide the loss after all.
  std::string unknown_base;
  int effective_batch_line = 0;  // N from an effective batch, without all processes
  int outside_line = 0;          // a backward outside every context
  double epoch_scale = 1;        // epochs that the program makes for each that was simulated
  double world = 2;
};

}  // namespace batchwright::check
