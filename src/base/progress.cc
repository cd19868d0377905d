#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/units.h"

namespace batchwright {
namespace {

constexpr double kTerminalSeconds = 0.1;  // ten times a second is as fast as a person reads
constexpr double kLogSeconds = 10;

std::size_t terminal_width(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

std::optional<double> seconds_left(double elapsed, double fraction) {
  // Below 2 % the average is dominated by start-up.
  if (fraction < 0.02 || fraction > 1 || elapsed <= 0) return std::nullopt;
  return elapsed * (1 - fraction) / fraction;
}

Progress::Style Progress::style_of(std::FILE* stream) {
  return ::isatty(::fileno(stream)) == 1 ? Style::Terminal : Style::Log;
}

Progress::Progress(std::FILE* stream, Style style, std::function<double()> clock)
    : stream_(stream), style_(style), clock_(clock ? std::move(clock) : steady_seconds) {
  started_ = clock_();
}

Progress::~Progress() { finish(); }

void Progress::update(const std::string& text, std::optional<double> fraction) {
  if (style_ == Style::Silent) return;
  const double now = clock_();
  const double pause = style_ == Style::Terminal ? kTerminalSeconds : kLogSeconds;
  if (shown_ && now - last_shown_ < pause) return;
  shown_ = true;
  last_shown_ = now;
  std::string line = text;
  if (fraction) {
    line += fmt::format("  {:.0f} %", 100 * std::clamp(*fraction, 0.0, 1.0));
    if (const auto left = seconds_left(now - started_, *fraction); left && *left >= 0.5) {
      line += fmt::format(", about {} left", format_seconds(*left));
    }
  }
  if (style_ == Style::Log) {
    fmt::print(stream_, "{}\n", line);
  } else {
    // A line wider than the terminal wraps and can no longer be rewritten in place.
    fmt::print(stream_, "\r\x1b[2K{}", line.substr(0, terminal_width(stream_) - 1));
    line_visible_ = true;
  }
  std::fflush(stream_);
}

void Progress::restart() { started_ = clock_(); }

void Progress::note(const std::string& line) {
  if (style_ == Style::Silent) return;
  clear_line();
  fmt::print(stream_, "{}\n", line);
  std::fflush(stream_);
}

void Progress::clear_line() {
  if (!line_visible_) return;
  fmt::print(stream_, "\r\x1b[2K");
  line_visible_ = false;
}

void Progress::finish() {
  clear_line();
  std::fflush(stream_);
}

}  // namespace batchwright
