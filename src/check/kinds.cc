#include "check/kinds.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace batchwright::check {
namespace {

constexpr auto kLoop = Where::Loop;
constexpr auto kConfig = Where::Config;
constexpr auto kLog = Where::Log;
constexpr auto kMistake = Severity::Mistake;
constexpr auto kNote = Severity::Note;
constexpr auto kGradient = Affects::Gradient;
constexpr auto kSchedule = Affects::Schedule;
constexpr auto kReport = Affects::Report;
constexpr auto kMemory = Affects::Memory;

constexpr Kind kKinds[] = {
    {"tail_dropped", kLoop, kNote, kGradient,
     "the last, partial window of an epoch never reaches an optimizer step",
     "up to N-1 micro-batches of each epoch train nothing, and an epoch shorter than N makes no step at all",
     "step on the last batch too, or drop the tail on purpose (drop_last, a length that N divides)"},
    {"tail_leak", kLoop, kMistake, kGradient,
     "gradients of the last, partial window stay and join the first step of the next epoch",
     "the first step of every epoch after the first mixes micro-batches of two epochs with too much weight "
     "in all",
     "step on the last batch too, or zero the gradients at the start of each epoch"},
    {"tail_full_divisor", kLoop, kNote, kGradient,
     "the last, partial window is divided by the full number of accumulation steps",
     "the last step of an epoch is too small by (its micro-batches) / N",
     "divide by the number of micro-batches that the window really has"},
    {"log_factor", kLoop, kMistake, kReport, "the reported loss is off by the number of accumulation steps",
     "the training is right, but its loss cannot be compared with the evaluation loss or another split",
     "report the undivided loss, averaged over the micro-batches that were counted"},
    {"off_by_one_boundary", kLoop, kMistake, kGradient,
     "the boundary test is off by one, so that the first window holds a single micro-batch",
     "the first step of every epoch sees 1 micro-batch with weight 1/N, and every later window is shifted",
     "test (step + 1) % N == 0, or count from 1"},
    {"no_division", kLoop, kMistake, kGradient,
     "micro-batch losses are summed without dividing by their number",
     "the gradient is N times that of the same batch in one piece: clipping and learning rate mean something "
     "else",
     "divide the loss by the accumulation steps before backward"},
    {"double_division", kLoop, kMistake, kGradient,
     "the loss is divided by the number of micro-batches twice", "the gradient is 1/N of what it should be",
     "divide once: by hand or by the framework, not both"},
    {"divide_after_backward", kLoop, kMistake, kGradient,
     "the loss is divided after backward has already run",
     "the division changes what is logged, not the gradient, which stays N times too large",
     "divide before backward"},
    {"zero_grad_in_window", kLoop, kMistake, kGradient, "gradients are zeroed inside the accumulation window",
     "only the last micro-batch of a window reaches the step; the others were computed for nothing",
     "zero the gradients once, after each optimizer step"},
    {"missing_zero_grad", kLoop, kMistake, kGradient, "gradients are never zeroed after a step",
     "every step adds the gradients of all steps before it",
     "call optimizer.zero_grad() after each optimizer step"},
    {"apply_inside_loop", kLoop, kMistake, kGradient,
     "the optimizer steps inside the loop over the micro-batches of one batch",
     "each step sees a running sum: early micro-batches count several times, and there are N steps per batch",
     "step once, after the loop over the micro-batches"},
    {"geometric_weighting", kLoop, kMistake, kGradient,
     "the accumulated sum is divided again with each micro-batch",
     "weights fall geometrically: the newest micro-batch dominates the step",
     "divide each new loss or gradient, not the running sum"},
    {"sched_per_micro_step", kLoop, kMistake, kSchedule,
     "the scheduler steps with every micro-batch although its length counts optimizer steps",
     "the schedule ends after 1/N of the training", "step the scheduler with the optimizer"},
    {"sched_units", kLoop, kMistake, kSchedule,
     "the scheduler's length counts micro-batches although it steps with the optimizer",
     "the learning rate covers only 1/N of its schedule, and warm-up lasts N times as long",
     "give lengths in optimizer steps: ceil(len(loader) / N) * epochs"},
    {"sched_world_size", kLoop, kMistake, kSchedule,
     "a prepared scheduler advances once per process, and its length ignores the number of processes",
     "with W processes the schedule ends after 1/W of the training",
     "multiply the lengths by the number of processes, or do not prepare the scheduler"},
    {"sched_vs_skipped_updates", kLoop, kNote, kSchedule,
     "the scheduler steps also when the gradient scaler skips the optimizer step",
     "each overflow moves the schedule one step ahead of the training: a small effect",
     "step the scheduler only when the scale did not shrink"},
    {"clip_before_unscale", kLoop, kMistake, kGradient,
     "gradients are clipped while they still carry the loss scale",
     "the norm is about 65536 times too large, so that every step is clipped to almost nothing",
     "call scaler.unscale_(optimizer) before clipping"},
    {"unscale_twice", kLoop, kMistake, kGradient, "gradients are unscaled more than once between two steps",
     "PyTorch raises an error at the second unscale_, or earlier micro-batches lose their scale twice",
     "unscale once, at the window's boundary"},
    {"clip_per_micro_step", kLoop, kMistake, kGradient, "gradients are clipped after every micro-batch",
     "the running sum is cut inside the window: early micro-batches lose weight, and the limit means "
     "something else",
     "clip once, at the window's boundary, before the step"},
    {"token_mean_of_means", kLoop, kNote, kGradient,
     "token losses are averaged in each micro-batch and then over micro-batches",
     "tokens of short micro-batches weigh more than those of long ones, so the result depends on the split",
     "sum the token losses and divide by the labelled tokens of the whole window"},
    {"custom_loss_bypass", kLoop, kMistake, kGradient,
     "an own loss ignores num_items_in_batch, so that the Trainer no longer divides it",
     "loss and gradient are N times too large",
     "divide by num_items_in_batch, or set model_accepts_loss_kwargs = False"},
    {"world_size_rescale_cargo", kLoop, kMistake, kGradient,
     "the loss is multiplied by the number of processes although it is a mean already",
     "with W processes the gradient is W times too large",
     "multiply by the number of processes only after dividing a sum by the global count"},
    {"count_not_matching_trained_tokens", kLoop, kMistake, kGradient,
     "the token count that divides the loss is not that of the tokens in the loss",
     "the loss is off by the difference, and becomes NaN when the count is 0",
     "count the labels that enter the loss: after the causal shift, without ignored ones"},
    {"aux_loss_unscaled", kLoop, kMistake, kGradient,
     "an auxiliary loss joins a loss that is already divided, without being divided itself",
     "the auxiliary part weighs N times too much", "divide the auxiliary loss by the accumulation steps too"},
    {"no_sync_inverted", kLoop, kMistake, kGradient,
     "no_sync covers the micro-batch on which the gradients have to be exchanged",
     "processes step with different gradients and drift apart",
     "use no_sync on every micro-batch except the last of a window"},
    {"backward_outside_context", kLoop, kMistake, kGradient,
     "backward runs outside the context that was meant to hold it",
     "the context has no effect: gradients are exchanged with every micro-batch, or the step is not gated",
     "move forward and backward inside the context"},
    {"fsdp_no_sync_memory", kLoop, kNote, kMemory,
     "no_sync under FSDP keeps whole gradients on every process", "memory grows by the unsharded gradients",
     "leave no_sync out, or accept the memory"},
    {"step_in_backward_hook", kLoop, kMistake, kGradient,
     "the optimizer steps in a backward hook while the loop accumulates",
     "every micro-batch is an update of its own: nothing accumulates",
     "do not accumulate with an optimizer in the backward pass, or accumulate inside the hook"},
    {"world_size_effective_batch", kLoop, kMistake, kGradient,
     "the accumulation steps are computed without all the devices that take part",
     "the effective batch is larger than intended by the factor that was left out",
     "effective batch = micro-batch * accumulation steps * processes on all nodes"},
    {"dynamic_micro_batch_divisor", kLoop, kMistake, kGradient,
     "micro-batches vary in number, but the divisor is fixed",
     "the gradient grows with the number of micro-batches", "divide by what the window really holds"},
    {"varying_accum_modulo", kLoop, kMistake, kGradient,
     "the number of accumulation steps changes while a modulo of the global count decides the boundary",
     "windows get irregular lengths", "count micro-batches since the last step"},
    {"resume_units", kLoop, kMistake, kSchedule, "resuming mixes optimizer steps and micro-batches",
     "data are repeated or skipped, or the run ends at once", "convert with the accumulation steps, once"},
    {"ema_per_micro_step", kLoop, kMistake, kSchedule,
     "work that belongs to an optimizer step runs with every micro-batch",
     "averages, evaluations or checkpoints happen N times as often as meant",
     "do it only where the optimizer has stepped"},
    {"bf16_accumulation", kLoop, kMistake, kGradient, "gradients are summed in bfloat16",
     "late micro-batches are rounded away: bfloat16 keeps 8 bits", "accumulate in fp32"},
    {"checkpoint_rng", kLoop, kMistake, kGradient,
     "activation checkpointing does not restore the random state, with dropout on",
     "the recomputed forward differs from the first one, so the gradient is wrong",
     "leave preserve_rng_state on"},
    {"not_equivalent_by_nature", kLoop, kMistake, kGradient,
     "the loss or the model depends on the whole micro-batch (contrastive loss, batch statistics)",
     "accumulating does not give the gradient of the large batch",
     "use a larger micro-batch, cached gradients, or batch-independent normalisation"},
    {"adam_masks_scale", kLoop, kNote, kGradient, "an Adam optimizer hides a wrong gradient scale",
     "the loss curve looks normal; only the gradient norm, clipping and weight decay show it",
     "look at the gradient norm, not the loss"},

    {"ds_world_size", kConfig, kMistake, kGradient,
     "train_batch_size is not micro-batch * accumulation steps * processes",
     "DeepSpeed stops with an assertion at start", "correct the launch or the number that is wrong"},
    {"ds_accum_missing", kConfig, kMistake, kGradient,
     "the DeepSpeed file leaves out gradient_accumulation_steps",
     "it is taken as 1 or derived: an assertion, or a batch of another size",
     "write it, or \"auto\" where the launcher fills it in"},
    {"ds_accum_default", kConfig, kMistake, kGradient,
     "the engine's accumulation steps stay at 1 while the loop accumulates",
     "every micro-batch is an optimizer step", "write the same number in both places, or \"auto\""},
    {"not_divisible", kConfig, kMistake, kGradient,
     "the global batch is not a multiple of micro-batch * processes",
     "the accumulation steps are floored, and each step sees fewer examples than asked",
     "take the nearest exact batch"},
    {"two_places", kConfig, kMistake, kGradient, "one quantity is set twice, with different values",
     "the start is refused, or one of them wins silently", "keep it in one place"},
    {"silent_override", kConfig, kMistake, kGradient, "another value wins over the one that is written",
     "batch or learning rate differ from the file", "set it where it wins"},
    {"type_error", kConfig, kMistake, kGradient, "a number is written as a string",
     "comparison with the same number fails", "write a number, or \"auto\""},
    {"warmup_gt_total", kConfig, kMistake, kSchedule, "warm-up is longer than the whole training",
     "the learning rate rises to the end and never reaches its value",
     "give warm-up in optimizer steps, as a share of the total"},
    {"max_steps_unit", kConfig, kMistake, kSchedule, "max_steps does not count optimizer steps",
     "training runs for many more (or fewer) epochs than meant",
     "max_steps = ceil(examples / effective batch) * epochs"},
    {"clipping_ignored", kConfig, kMistake, kGradient, "clipping is set where the engine does not read it",
     "gradients are not clipped", "set it in the engine's configuration"},
    {"lr_override", kConfig, kMistake, kSchedule,
     "the engine's scheduler replaces the learning rate of the arguments",
     "the learning rate is not the one in the arguments", "set it in one place"},
    {"steps_world_size", kConfig, kMistake, kSchedule,
     "total steps are computed without the number of processes", "the learning rate ends high or early",
     "divide by the number of processes"},
    {"accum_not_equivalent", kConfig, kMistake, kGradient,
     "accumulation is used with a loss that needs the whole batch", "quality depends on the micro-batch",
     "use a larger micro-batch, or cached gradients"},

    {"loss_times_accum", kLog, kMistake, kGradient,
     "loss and gradient norm are a multiple of the accumulation steps",
     "the micro-batch losses are summed, not averaged", "divide by the window's micro-batches or tokens"},
    {"loss_constant_factor", kLog, kMistake, kReport, "loss and gradient norm are off by one constant factor",
     "the first loss is far from ln(classes)", "compare with the evaluation loss to find the factor"},
    {"log_divided_twice", kLog, kMistake, kReport, "the reported loss is a fraction of the real one",
     "it cannot be compared with the evaluation loss", "report the undivided loss"},
    {"window_crosses_epoch", kLog, kMistake, kGradient,
     "accumulation windows take micro-batches from two epochs", "steps per epoch are not whole",
     "flush or drop the last window of an epoch"},
    {"library_bug", kConfig, kNote, kGradient, "the versions in use are known to scale gradients wrongly",
     "see the versions named", "upgrade"},
};

}  // namespace

std::span<const Kind> all_kinds() { return kKinds; }

const Kind* find_kind(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

Finding make_finding(std::string_view kind, int line) {
  const Kind* found = find_kind(kind);
  if (!found) throw Error(ErrorKind::Internal, std::string(kind), "not a kind of the catalogue");
  Finding finding;
  finding.kind = found->name;
  finding.severity = found->severity;
  finding.line = line;
  finding.what = found->what;
  finding.consequence = found->consequence;
  finding.fix = found->fix;
  finding.affects = found->affects;
  return finding;
}

}  // namespace batchwright::check
