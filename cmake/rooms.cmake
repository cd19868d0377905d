# A room is a folder src/<room>: one static library, and the test program tests/<room>/*_test.cc.

# What tests/paths.h declares.
set(BATCHWRIGHT_TEST_PATHS ${CMAKE_BINARY_DIR}/generated/test_paths.cc)
file(CONFIGURE OUTPUT ${BATCHWRIGHT_TEST_PATHS} CONTENT [[
#include "paths.h"

namespace batchwright {
std::string source_folder() { return "@CMAKE_SOURCE_DIR@"; }
std::string programs_folder() { return "@CMAKE_BINARY_DIR@/bin"; }
std::string python_for_tests() { return "@BATCHWRIGHT_PYTHON@"; }
}  // namespace batchwright
]] @ONLY)

# What nearly every test includes, compiled once a preset. The engine's tests see other macros and do without.
set(BATCHWRIGHT_TEST_PCH ${CMAKE_BINARY_DIR}/generated/test_pch.cc)
file(CONFIGURE OUTPUT ${BATCHWRIGHT_TEST_PCH} CONTENT "// Carries the tests' precompiled headers.\n")
function(batchwright_test_headers name)
  if(name STREQUAL engine)
    return()
  endif()
  if(NOT TARGET batchwright_test_pch)
    add_library(batchwright_test_pch OBJECT ${BATCHWRIGHT_TEST_PCH})
    target_link_libraries(batchwright_test_pch PRIVATE batchwright_base batchwright_flags GTest::gtest_main)
    # The flags of an executable, as which the tests are compiled.
    set_target_properties(batchwright_test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(batchwright_test_pch PRIVATE -fPIE)
    target_precompile_headers(batchwright_test_pch PRIVATE <algorithm> <cmath> <filesystem> <fstream> <string>
      <vector> <gtest/gtest.h> <fmt/format.h> <nlohmann/json.hpp>)
  endif()
  target_precompile_headers(${name}_test REUSE_FROM batchwright_test_pch)
endfunction()

function(batchwright_room_tests name)
  if(NOT BATCHWRIGHT_TESTS)
    return()
  endif()
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*_test.cc)
  if(NOT tests)
    return()
  endif()
  add_executable(${name}_test ${tests} ${BATCHWRIGHT_TEST_PATHS})
  target_link_libraries(${name}_test PRIVATE ${ARGN} batchwright_flags GTest::gtest_main)
  target_include_directories(${name}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  batchwright_test_headers(${name})
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS ${name})
endfunction()

# Absolute paths go to the one file that needs them: on every command line they would keep ccache from serving a clone in
# another folder.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/data/python.cc PROPERTIES COMPILE_DEFINITIONS
  "BATCHWRIGHT_PYTHON=\"${BATCHWRIGHT_PYTHON}\";BATCHWRIGHT_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\"")

# One set of precompiled headers, made by base, serves every room: making it costs as much as six files.
function(batchwright_precompiled_headers name)
  if(name STREQUAL base)
    target_precompile_headers(batchwright_base PRIVATE <algorithm> <cstdint> <filesystem> <map> <memory>
      <optional> <span> <string> <string_view> <vector> <fmt/format.h> <nlohmann/json.hpp>)
  else()
    target_precompile_headers(batchwright_${name} REUSE_FROM batchwright_base)
  endif()
endfunction()

# batchwright_room(NAME [USES room...] [LIBRARIES target...]): a room without sources yet is an empty interface.
function(batchwright_room name)
  cmake_parse_arguments(ROOM "" "" "USES;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(TRANSFORM ROOM_USES PREPEND batchwright_)
  # Data files of a room (tables of facts) are compiled in: data_gpus_csv() for src/hardware/gpus.csv.
  file(GLOB data CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.csv ${CMAKE_SOURCE_DIR}/src/${name}/*.jsonl)
  if(data)
    set(embedded ${CMAKE_BINARY_DIR}/generated/${name}_data.cc)
    add_custom_command(OUTPUT ${embedded}
      COMMAND ${CMAKE_COMMAND} -DOUT=${embedded} -DROOM=${name} "-DFILES=${data}"
              -P ${CMAKE_SOURCE_DIR}/cmake/embed_data.cmake
      DEPENDS ${data} ${CMAKE_SOURCE_DIR}/cmake/embed_data.cmake VERBATIM)
    list(APPEND sources ${embedded})
  endif()
  if(sources)
    add_library(batchwright_${name} STATIC ${sources})
    target_link_libraries(batchwright_${name} PRIVATE batchwright_flags PUBLIC ${ROOM_USES} ${ROOM_LIBRARIES})
    batchwright_precompiled_headers(${name})
  else()
    add_library(batchwright_${name} INTERFACE)
    target_link_libraries(batchwright_${name} INTERFACE ${ROOM_USES} ${ROOM_LIBRARIES})
  endif()
  batchwright_room_tests(${name} batchwright_${name})
endfunction()

# batchwright_program(PROGRAM ROOM ...): src/<room>/main.cc becomes the program, the rest of the room a library.
function(batchwright_program program name)
  cmake_parse_arguments(ROOM "" "" "USES;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  list(TRANSFORM ROOM_USES PREPEND batchwright_)
  add_library(batchwright_${name} STATIC ${sources} ${BATCHWRIGHT_DOCS_SOURCE})
  target_link_libraries(batchwright_${name} PRIVATE batchwright_flags PUBLIC ${ROOM_USES} ${ROOM_LIBRARIES})
  batchwright_precompiled_headers(${name})
  add_executable(${program} ${CMAKE_SOURCE_DIR}/src/${name}/main.cc)
  target_link_libraries(${program} PRIVATE batchwright_${name} batchwright_flags)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  batchwright_room_tests(${name} batchwright_${name})
  if(TARGET ${name}_test)
    add_dependencies(${name}_test ${program})  # its tests run the program
  endif()
endfunction()

# Every docs/<verb>.md becomes a string in the program, so that --help prints the page itself.
file(GLOB BATCHWRIGHT_DOC_PAGES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
set(BATCHWRIGHT_DOCS_SOURCE ${CMAKE_BINARY_DIR}/generated/doc_pages.cc)
add_custom_command(OUTPUT ${BATCHWRIGHT_DOCS_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DOUT=${BATCHWRIGHT_DOCS_SOURCE} -DDOCS=${CMAKE_SOURCE_DIR}/docs
          -P ${CMAKE_SOURCE_DIR}/cmake/embed_docs.cmake
  DEPENDS ${BATCHWRIGHT_DOC_PAGES} ${CMAKE_SOURCE_DIR}/cmake/embed_docs.cmake)

# batchwright_engine(USES room...): the engine's library, its program and its tests.
function(batchwright_engine)
  cmake_parse_arguments(ROOM "" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/engine/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER sources EXCLUDE REGEX "/kernels_avx")
  endif()
  if(BATCHWRIGHT_CUDA)
    list(FILTER sources EXCLUDE REGEX "/collective_no_nccl\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "/collective_nccl\\.cc$")
  endif()
  list(TRANSFORM ROOM_USES PREPEND batchwright_)
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  get_target_property(torch_includes torch INTERFACE_INCLUDE_DIRECTORIES)
  add_library(batchwright_engine STATIC ${sources})
  target_include_directories(batchwright_engine SYSTEM PUBLIC ${torch_includes})
  target_compile_options(batchwright_engine PUBLIC ${torch_flags})
  # The torch wheel ships headers of another fmt than Debian's library: take them as headers alone.
  target_compile_definitions(batchwright_engine PUBLIC FMT_HEADER_ONLY)
  target_precompile_headers(batchwright_engine PRIVATE <algorithm> <cstdint> <filesystem> <map> <memory> <optional>
    <span> <string> <string_view> <vector> <fmt/format.h> <nlohmann/json.hpp>)
  target_link_libraries(batchwright_engine PRIVATE batchwright_flags PUBLIC ${ROOM_USES} ${TORCH_LIBRARIES})
  # The vector kernels, once for each instruction set; kernels.cc picks at run time. -ffp-contract: fused multiply-add.
  set(kernel_flags "-O3;-ffp-contract=fast;-fno-math-errno;-Wno-psabi;-Wno-ignored-attributes")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/engine/kernels_baseline.cc PROPERTIES
    COMPILE_OPTIONS "${kernel_flags}" SKIP_PRECOMPILE_HEADERS ON)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_definitions(batchwright_engine PRIVATE BATCHWRIGHT_X86)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/engine/kernels_avx2.cc PROPERTIES
      COMPILE_OPTIONS "${kernel_flags};-mavx2;-mfma" SKIP_PRECOMPILE_HEADERS ON)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/engine/kernels_avx512.cc PROPERTIES
      COMPILE_OPTIONS "${kernel_flags};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mprefer-vector-width=512"
      SKIP_PRECOMPILE_HEADERS ON)
  endif()
  add_executable(batchwright-engine ${CMAKE_SOURCE_DIR}/src/engine/main.cc)
  target_link_libraries(batchwright-engine PRIVATE batchwright_engine batchwright_flags)
  set_target_properties(batchwright-engine PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  batchwright_room_tests(engine batchwright_engine)
  if(TARGET engine_test)
    add_dependencies(engine_test batchwright batchwright-engine)  # some of its tests run both programs
  endif()
endfunction()
