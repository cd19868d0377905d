#pragma once

#include <span>
#include <string_view>

#include "check/finding.h"

namespace batchwright::check {

enum class Where { Loop, Config, Log };  // in which kind of file a kind is found

// One kind of accumulation mistake: its stable name (as --json prints it) and what can be said of it without
// a file at hand. A finding may replace the three sentences with ones that carry its own numbers.
struct Kind {
  std::string_view name;
  Where where;
  Severity severity;
  Affects affects;
  std::string_view what;         // what the file does, in one clause
  std::string_view consequence;  // what follows for the training
  std::string_view fix;          // what to write instead
};

// The whole catalogue, loops first, then configurations, then logs.
std::span<const Kind> all_kinds();

// nullptr when there is no kind of that name.
const Kind* find_kind(std::string_view name);

// A finding with the catalogue's severity, affects and sentences. Throws Error (Internal) for an unknown
// name.
Finding make_finding(std::string_view kind, int line);

}  // namespace batchwright::check
