#pragma once

#include <string>
#include <string_view>

#include "check/finding.h"

namespace batchwright::check {

// Whether the text can hold a training loop at all: a substring scan (a memchr pass for most files), so that
// a tree of thousands of files costs almost nothing. False means that check_python would find nothing.
bool may_hold_loop(std::string_view source);

// Simulates every training loop of a Python file and judges its optimizer steps by the weight with which each
// micro-batch enters them. Takes any bytes; never throws on them. Verdict CannotTell says in `missing` what
// would have to be known.
FileReport check_python(std::string_view source, const std::string& path);

// The same for the code cells of a Jupyter notebook (nbformat 3 or 4), joined in order; lines count within
// the joined code. A notebook that is not valid JSON is CannotTell.
FileReport check_notebook(std::string_view json, const std::string& path);

}  // namespace batchwright::check
