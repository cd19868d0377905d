# Tests of the project's own structure: the ladder of rooms, headers that compile alone, the format.
add_test(NAME structure.ladder
  COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/structure/ladder_test.py ${CMAKE_SOURCE_DIR})
set_tests_properties(structure.ladder PROPERTIES LABELS structure)

# One object a header, each including nothing but that header: building this target is the test.
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/*/*.h)
list(FILTER headers EXCLUDE REGEX "^engine/")
set(alone_sources)
foreach(header ${headers})
  string(REPLACE "/" "_" stem ${header})
  set(source ${CMAKE_BINARY_DIR}/headers_alone/${stem}.cc)
  file(GENERATE OUTPUT ${source} CONTENT "#include \"${header}\"  // IWYU pragma: keep\n")
  list(APPEND alone_sources ${source})
endforeach()
add_library(headers_alone OBJECT ${alone_sources})
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  set_target_properties(headers_alone PROPERTIES EXCLUDE_FROM_ALL TRUE)  # once is enough: no other preset finds more
endif()
target_link_libraries(headers_alone PRIVATE batchwright_flags batchwright_cli)
target_compile_options(headers_alone PRIVATE -O0 -g0)

add_test(NAME structure.readme
  COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/structure/readme_test.py ${CMAKE_SOURCE_DIR})
set_tests_properties(structure.readme PROPERTIES LABELS structure)

add_test(NAME run.hook_device COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/run/hook_device_test.py)
set_tests_properties(run.hook_device PROPERTIES LABELS "run;structure")
if(TARGET batchwright_recorder)
  add_test(NAME run.hook_recorder COMMAND ${CMAKE_COMMAND} -E env BATCHWRIGHT_RECORDER=$<TARGET_FILE:batchwright_recorder>
    ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/run/hook_recorder_test.py)
  set_tests_properties(run.hook_recorder PROPERTIES LABELS "run;structure")
endif()
