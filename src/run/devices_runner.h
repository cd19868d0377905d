#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "run/trial_runner.h"

namespace batchwright::run {

// Trials on several numbers of devices: a worker for each, started when its first trial comes. All stay,
// because trials take turns and a start costs seconds; a worker without a trial computes nothing.
class DevicesRunner : public Workload {
 public:
  using Start = std::function<std::unique_ptr<TrialRunner>(std::int64_t devices)>;
  explicit DevicesRunner(Start start) : start_(std::move(start)) {}

  Trial run(const TrialRequest& request) override {
    auto& runner = runners_[request.split.devices];
    if (!runner) runner = start_(request.split.devices);
    Trial trial = runner->run(request);
    last_ = runner.get();
    return trial;
  }
  std::optional<Hello> hello() const override { return last_ != nullptr ? last_->hello() : std::nullopt; }

 private:
  Start start_;
  std::map<std::int64_t, std::unique_ptr<TrialRunner>> runners_;
  const TrialRunner* last_ = nullptr;
};

}  // namespace batchwright::run
