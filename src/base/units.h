#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace batchwright {

// "900MiB", "2GiB", "1.5GB", "943718400" -> bytes. KiB/MiB/GiB/TiB are powers of 1024, KB/MB/GB/TB of 1000.
// `subject` names the option in the error. Throws Usage, also on a bare number below 1 MiB.
std::int64_t parse_bytes(std::string_view text, const std::string& subject);

// "60s", "5m", "1.5h", "500ms", "90" (seconds) -> seconds. Throws Usage.
double parse_seconds(std::string_view text, const std::string& subject);

// "812 MiB", "1.96 GiB": three significant digits, powers of 1024.
std::string format_bytes(std::int64_t bytes);

// "41.2 s", "238 ms", "1.40 us", "3 min 20 s", "2 h 05 min".
std::string format_seconds(double seconds);

// "238 ms [231, 246]": one unit for the value and its interval.
std::string format_seconds_interval(double value, double low, double high);

// "17.2 %".
std::string format_percent(double fraction, int decimals = 1);

}  // namespace batchwright
