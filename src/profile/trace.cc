#include "profile/trace.h"

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace batchwright::profile {
namespace {

constexpr int kStepRow = 0;  // threads follow below it

double microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

void Trace::add(std::string name, int row, std::chrono::steady_clock::time_point begin,
                std::chrono::steady_clock::time_point end) {
  events_.push_back({std::move(name), row, microseconds(begin - start_), microseconds(end - begin)});
}

void Trace::add(int thread, const PhaseSpan& span) {
  if (span.phase == Phase::Residual) return;  // a gap in the picture says it better
  add(std::string(kPhaseNames[static_cast<std::size_t>(span.phase)]), thread + 1, span.begin, span.end);
}

void Trace::add_step(std::int64_t step, std::chrono::steady_clock::time_point begin,
                     std::chrono::steady_clock::time_point end) {
  add("step " + std::to_string(step), kStepRow, begin, end);
}

std::string Trace::to_chrome_json() const {
  Json events = Json::array();
  int rows = 0;
  for (const Event& event : events_) {
    rows = std::max(rows, event.row);
    events.push_back({{"name", event.name},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", event.row},
                      {"ts", event.begin_microseconds},
                      {"dur", event.duration_microseconds}});
  }
  for (int row = 0; row <= rows; ++row) {
    const std::string name = row == kStepRow ? "optimizer steps" : "thread " + std::to_string(row);
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", row}, {"args", {{"name", name}}}});
  }
  return dump_line({{"displayTimeUnit", "ms"}, {"traceEvents", events}}) + "\n";
}

}  // namespace batchwright::profile
