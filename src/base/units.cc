#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace batchwright {
namespace {

// Splits "900MiB" into 900 and "MiB"; false when it does not start with a plain positive number.
bool split_number(std::string_view text, double& number, std::string_view& unit) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return false;
  unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return true;
}

// A size without a unit that is smaller has lost its unit: nothing that trains fits in it.
constexpr double kFewestBareBytes = 1048576;

// The unit in which a duration below a minute is printed.
std::pair<double, const char*> second_unit(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 1 || size == 0) return {1, "s"};
  if (size >= 1e-3) return {1e-3, "ms"};
  if (size >= 1e-6) return {1e-6, "us"};
  return {1e-9, "ns"};
}

// Three significant digits without an exponent.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size < 0.005) return "0.00";  // not -0.00
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::int64_t parse_bytes(std::string_view text, const std::string& subject) {
  static constexpr std::array<std::pair<std::string_view, double>, 13> kUnits = {{{"", 1},
                                                                                  {"B", 1},
                                                                                  {"KiB", 1024.0},
                                                                                  {"MiB", 1048576.0},
                                                                                  {"GiB", 1073741824.0},
                                                                                  {"TiB", 1099511627776.0},
                                                                                  {"KB", 1e3},
                                                                                  {"kB", 1e3},
                                                                                  {"MB", 1e6},
                                                                                  {"GB", 1e9},
                                                                                  {"TB", 1e12},
                                                                                  {"M", 1e6},
                                                                                  {"G", 1e9}}};
  double number = 0;
  std::string_view unit;
  if (split_number(text, number, unit)) {
    if (unit.empty() && number > 0 && number < kFewestBareBytes) {
      throw Error(ErrorKind::Usage, subject, fmt::format("'{}' without a unit counts bytes", text),
                  fmt::format("Name the unit: {0}MiB or {0}GiB", text));
    }
    for (const auto& [name, factor] : kUnits) {
      if (unit == name && number * factor < 9e18)
        return static_cast<std::int64_t>(std::llround(number * factor));
    }
  }
  throw Error(ErrorKind::Usage, subject, fmt::format("'{}' is not a size", text),
              "Write it like 900MiB, 2GiB or 1.5GB");
}

double parse_seconds(std::string_view text, const std::string& subject) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}}};
  double number = 0;
  std::string_view unit;
  if (split_number(text, number, unit)) {
    for (const auto& [name, factor] : kUnits) {
      if (unit == name && number * factor < 1e9) return number * factor;
    }
  }
  throw Error(ErrorKind::Usage, subject, fmt::format("'{}' is not a time", text),
              "Write it like 60s, 5m or 1h");
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1023.5 && unit + 1 < kNames.size()) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{} {}", three_digits(value), kNames[unit]);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds >= 3600) {
    const auto minutes = std::llround(seconds / 60);
    return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  }
  if (seconds >= 99.95) {
    const auto whole = std::llround(seconds);
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  }
  const auto [factor, name] = second_unit(seconds);
  return fmt::format("{} {}", three_digits(seconds / factor), name);
}

std::string format_seconds_interval(double value, double low, double high) {
  constexpr double kUnreadable = 1e4;  // of the value's unit: then the unit of the interval's wider end
  const double widest = std::max({std::abs(value), std::abs(low), std::abs(high)});
  const bool in_units_of_widest =
      std::isfinite(widest) && (value == 0 || widest >= kUnreadable * second_unit(value).first);
  const auto [factor, name] = second_unit(in_units_of_widest ? widest : value);
  return fmt::format("{} {} [{}, {}]", three_digits(value / factor), name, three_digits(low / factor),
                     three_digits(high / factor));
}

std::string format_percent(double fraction, int decimals) {
  return fmt::format("{:.{}f} %", 100 * fraction, decimals);
}

}  // namespace batchwright
