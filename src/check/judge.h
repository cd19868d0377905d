#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/finding.h"
#include "check/scan.h"
#include "check/trace.h"

namespace batchwright::check {

// What one simulated run shows. `missing` is not empty when something decisive could not be followed.
struct Judgement {
  std::vector<Finding> findings;
  std::string missing;
  bool trains = false;       // there was a backward and a step
  bool accumulates = false;  // some step saw more than one micro-batch, or was meant to
};

Judgement judge(const Trace& trace, const Scan& scan);

// One optimizer step, seen through its losses.
struct StepView {
  int line = 0;
  std::size_t event = 0;           // its place in the trace
  std::vector<int> micro_batches;  // stamps, in order of evaluation
  std::vector<double> weights;     // of the main loss, one for each micro-batch
  std::vector<int> symbols;
  double sum = 0;
  bool normalised = false, uncertain = false, summed = false, rescaled = false;
  bool equal = true;  // all weights the same
  double world = 1;   // the factor of the number of processes, where it is the same for all
  double literal = 1;
  double other_sum = 0;  // the largest sum of another loss that goes into the same step; 0: none
  int other_line = 0;
};

// Which optimizers a loss is for: those that step next after its backward. By symbol.
std::map<int, std::set<int>> owners_of(const Trace& trace);
// The steps of one optimizer, judged by the losses that it is there for.
std::vector<StepView> views_of(const Trace& trace, int optimizer);
// Optimizers that step, in order of their first step.
std::vector<int> stepping_optimizers(const Trace& trace);

void judge_weights(const Trace& trace, const Scan& scan, int optimizer, Judgement& out);
void judge_order(const Trace& trace, const Scan& scan, Judgement& out);  // clip, unscale, contexts, hooks
void judge_schedules(const Trace& trace, const Scan& scan, Judgement& out);
void judge_reports(const Trace& trace, const Scan& scan, Judgement& out);  // logs, EMA, saving

// What the source shows by itself, once the runs have shown that the file accumulates.
void judge_source(const Module& module, const Scan& scan, Judgement& out);
void judge_resuming(const Module& module, const Scan& scan, Judgement& out);
void judge_counts(const Module& module, const Scan& scan, Judgement& out);
void judge_mean_by_count(const Module& module, const Scan& scan, Judgement& out);

// N as the run used it; 0 when nothing accumulates.
double window_of(const Trace& trace);
void add_finding(Judgement& out, Finding finding);
// At most one finding of a kind, at its first line.
void add_once(Judgement& out, std::string_view kind, int line);

}  // namespace batchwright::check
