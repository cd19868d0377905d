#include "check/log_rules.h"

#include <algorithm>
#include <cmath>

namespace batchwright::check {

double median(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.empty()) return kUnknown;
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  return values[middle];
}

bool within_factor(double a, double b, double tolerance) {
  if (!(a > 0) || !(b > 0)) return false;
  return std::abs(std::log(a / b)) <= std::log(1 + tolerance);
}

std::optional<double> LoggedRun::steps_in_all() const {
  if (total_steps) return total_steps;
  if (!examples || !micro_batch || !accumulation || !processes || !epochs) return std::nullopt;
  return std::ceil(std::ceil(*examples / (*micro_batch * *processes)) / *accumulation) * *epochs;
}

std::optional<double> LoggedRun::progress(const LogRecord& record) const {
  const std::optional<double> total = steps_in_all();
  if (!std::isnan(record.step) && total && *total > 0) return record.step / *total;
  if (!std::isnan(record.epoch) && epochs && *epochs > 0) return record.epoch / *epochs;
  return std::nullopt;
}

}  // namespace batchwright::check
