#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

namespace batchwright {

// One progress line: rewritten in place on a terminal, printed seldom elsewhere (a log file does not want ten
// lines a second). With a fraction it says how long is left.
class Progress {
 public:
  enum class Style { Terminal, Log, Silent };
  // Terminal when `stream` is one, else Log.
  static Style style_of(std::FILE* stream);

  // `clock` gives seconds that only grow; the default is the system's steady clock.
  Progress(std::FILE* stream, Style style, std::function<double()> clock = {});
  ~Progress();  // finish()
  Progress(const Progress&) = delete;

  // fraction in [0, 1] when known. Cheap enough to call every step.
  void update(const std::string& text, std::optional<double> fraction = std::nullopt);
  void restart();                      // the estimate counts from now: a new piece of work begins
  void note(const std::string& line);  // a line of its own that stays
  void finish();                       // clears the line

 private:
  void clear_line();

  std::FILE* stream_;
  Style style_;
  std::function<double()> clock_;
  double started_ = 0, last_shown_ = 0;
  bool shown_ = false, line_visible_ = false;
};

// Seconds left after `elapsed` when `fraction` is done, at the average speed so far; nullopt when unknowable.
std::optional<double> seconds_left(double elapsed, double fraction);

}  // namespace batchwright
