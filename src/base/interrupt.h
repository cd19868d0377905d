#pragma once

#include <optional>

namespace batchwright {

// While one exists, SIGINT, SIGTERM and SIGHUP are noted instead of ending the program, so that work can stop
// at a safe place and leave its files whole. A second SIGINT ends the program at once (children end with it,
// see ChildProcess). Only one may exist at a time; the former handlers come back with its end.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;

  bool requested() const;
  int descriptor() const;  // readable once requested: for poll(2)
  void check() const;      // throws Interrupted once requested, and past the time of stop_at
  // The time, in steady_seconds(), at which work must end as if a signal had asked for it; none: never.
  void stop_at(std::optional<double> seconds) { stop_at_ = seconds; }
  std::optional<double> stops_at() const { return stop_at_; }

 private:
  std::optional<double> stop_at_;
};

}  // namespace batchwright
