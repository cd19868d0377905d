#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/finding.h"
#include "check/scan.h"
#include "check/syntax.h"

namespace batchwright::check {

// Ways to mend a finding by changing a few lines of the file, the likeliest first. They come from the
// statement's text alone: whoever shows one checks the changed file first. Empty when no small change mends
// it.
std::vector<std::vector<Edit>> corrections_of(const Finding& finding, const Module& module, const Scan& scan);

// The file with the edits made.
std::string apply_edits(std::string_view source, const std::vector<Edit>& edits);

}  // namespace batchwright::check
