# The hook's recorder (python/batchwright/hook/batchwright_recorder.cc), one module for every CPython from 3.10 on. Without
# Python's headers it is left out, and the hook does the same in Python.
set(Python3_EXECUTABLE ${BATCHWRIGHT_PYTHON})
find_package(Python3 COMPONENTS Interpreter Development.Module)
if(NOT Python3_Development.Module_FOUND)
  message(STATUS "No headers of Python (Debian: python3-dev): the hook goes without its recorder")
  return()
endif()
add_library(batchwright_recorder MODULE
  python/batchwright/hook/batchwright_recorder.cc python/batchwright/hook/recorder_watch.cc)
target_include_directories(batchwright_recorder SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
target_link_libraries(batchwright_recorder PRIVATE batchwright_flags)
set_target_properties(batchwright_recorder PROPERTIES
  PREFIX "" SUFFIX ".abi3.so" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/batchwright)
add_dependencies(batchwright batchwright_recorder)
install(TARGETS batchwright_recorder LIBRARY DESTINATION lib/batchwright)
