#pragma once

#include <string>

namespace batchwright {

// Where the tests find things. Defined in one generated file: as macros on every command line they would keep
// ccache from serving a clone in another folder.
std::string source_folder();     // of the project
std::string programs_folder();   // the built programs: build/<preset>/bin
std::string python_for_tests();  // the Python with the packages of requirements-dev.txt

}  // namespace batchwright
