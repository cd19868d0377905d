#pragma once

namespace batchwright::cli {

// The whole program: parses, runs one verb, prints. Returns the exit code (0 done, 1 no, 2 wrong use, 70 our
// fault, 130 interrupted). Never throws.
int run(int argc, char** argv);

}  // namespace batchwright::cli
