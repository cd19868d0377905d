#include "cli/cli.h"

int main(int argc, char** argv) { return batchwright::cli::run(argc, argv); }
