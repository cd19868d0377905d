#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardware/gpu.h"
#include "plan/batch_arithmetic.h"
#include "plan/memory.h"
#include "plan/request.h"
#include "plan/shape.h"
#include "plan/time.h"

namespace batchwright::plan {

enum class Fits { Yes, No, Unsure };
std::string_view name_of(Fits fits);

struct Range {
  double low = 0, mid = 0, high = 0;
};

// One split with what is predicted for it.
struct SplitPlan {
  Split split;
  BatchCheck batch;
  Fits fits = Fits::Unsure;
  Range peak_bytes;  // in the request's counter
  MemoryPrediction memory;
  Range needed_bytes;  // the least a process can live with: this against the limit decides `fits`
  Range step_seconds;
  TimeParts time;
};

// A change, or the fewest changes together, that makes an impossible plan possible.
struct Change {
  std::string change;
  double needed_bytes = 0;  // what decides `fits`
  Range peak_bytes;
  double step_seconds = 0;
  Fits fits = Fits::No;
};

struct Plan {
  Request request;
  hardware::Device device;
  std::int64_t limit_bytes = 0;  // what a process may use
  double parameters = 0, trained_parameters = 0;
  std::vector<SplitPlan> splits;  // largest micro-batch first
  std::optional<std::size_t> recommended;
  std::string reason;
  std::optional<std::int64_t> largest_micro_batch_that_fits;
  std::optional<LearningRateAdvice> learning_rate;
  std::optional<Warmup> warmup;
  std::vector<Change> if_nothing_fits;
  std::vector<std::string> warnings;

  bool nothing_fits() const;
};

// Answers requests; keeps the shapes it has met, so that many requests on few models are quick. Not shared
// between threads.
class Planner {
 public:
  // Throws what parse_request, find_model and find_device throw.
  Plan plan(Request request);

 private:
  const model::ModelConfig& config_of(const std::string& model);
  const ModelShape& shape_for(const Request& request);

  std::map<std::string, std::unique_ptr<model::ModelConfig>> configs_;
  std::map<std::string, std::unique_ptr<ModelShape>> shapes_;
};

// The device of a request: a table's, a described one, or this machine's calibration ("cpu", "auto").
hardware::Device resolve_device(const Request& request);

}  // namespace batchwright::plan
