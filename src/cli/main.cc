#include "base/process.h"
#include "cli/cli.h"

int main(int argc, char** argv) {
  batchwright::hold_standard_descriptors();
  return batchwright::cli::run(argc, argv);
}
