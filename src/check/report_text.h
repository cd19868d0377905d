#pragma once

#include <string>
#include <vector>

#include "check/finding.h"

namespace batchwright::check {

// Lines as compilers print them: "file:line: mistake kind: what", then what follows, what to write instead,
// and the corrected lines as a diff where a few mend it. Ends with one line of totals.
std::string report_text(const std::vector<FileReport>& reports);

}  // namespace batchwright::check
