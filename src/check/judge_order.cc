// The order of unscale, clip and step, and the contexts that hold back the exchange of gradients.
#include <algorithm>
#include <set>

#include "check/judge.h"
#include "check/kinds.h"

namespace batchwright::check {
namespace {

void judge_clipping(const Trace& trace, Judgement& out) {
  bool through_scaler = false, any_step = false;
  for (const Event& event : trace.events) {
    any_step = any_step || event.kind == EventKind::Step;
    through_scaler = through_scaler || (event.kind == EventKind::Step && event.through_scaler);
  }
  int clip_line = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::Clip) {
      clip_line = event.line;
      // A run whose gradients are scaled but whose steps are not is not a configuration that anyone uses.
      if (event.scaled && through_scaler) add_finding(out, make_finding("clip_before_unscale", event.line));
    }
    if (event.kind == EventKind::Backward && event.clipped && clip_line > 0)
      add_finding(out, make_finding("clip_per_micro_step", clip_line));
    if (event.kind == EventKind::Unscale && event.repeated)
      add_finding(out, make_finding("unscale_twice", event.line));
  }
}

void judge_exchange(const Trace& trace, Judgement& out) {
  if (trace.unentered_context) add_finding(out, make_finding("backward_outside_context", trace.context_line));
  const bool contexts = trace.used_no_sync || trace.used_accumulate;
  if (!contexts) return;
  if (trace.backward_in_context == 0 && trace.backward_outside_context > 1 && trace.saw_context) {
    add_finding(out, make_finding("backward_outside_context",
                                  trace.outside_line > 0 ? trace.outside_line : trace.context_line));
    return;
  }
  if (trace.used_accumulate && trace.backward_outside_context > 0 &&
      trace.backward_outside_context >= trace.backward_in_context && trace.accumulation > 1) {
    add_finding(out, make_finding("backward_outside_context", trace.outside_line));
    return;
  }
  if (!trace.used_no_sync) return;
  // The last backward before a step has to exchange.
  int steps = 0, unsynced = 0, line = 0;
  bool last_no_sync = false, seen = false;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::Backward) {
      last_no_sync = event.no_sync;
      seen = true;
    }
    if (event.kind == EventKind::Step && seen) {
      ++steps;
      if (last_no_sync) {
        ++unsynced;
        line = trace.context_line;
      }
    }
  }
  // One step without exchange may be the flush of a tail; most of them are not.
  if (steps > 0 && unsynced * 2 > steps && !trace.open_exchange)
    add_finding(out, make_finding("no_sync_inverted", line));
  if (trace.used_fsdp) add_finding(out, make_finding("fsdp_no_sync_memory", trace.context_line));
}

}  // namespace

void judge_order(const Trace& trace, const Scan& scan, Judgement& out) {
  if (trace.effective_batch_line > 0 && !scan.splits_by_world())
    add_once(out, "world_size_effective_batch", trace.effective_batch_line);
  judge_clipping(trace, out);
  judge_exchange(trace, out);
}

}  // namespace batchwright::check
