# Warnings, sanitizers and ccache: everything that is said to the compiler for every target of ours.
add_library(batchwright_flags INTERFACE)
target_compile_options(batchwright_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
if(BATCHWRIGHT_WERROR)
  # Warnings that depend on the optimiser's view differ between compiler releases: they stay warnings.
  target_compile_options(batchwright_flags INTERFACE -Werror -Wno-error=maybe-uninitialized
    -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=restrict)
endif()
target_include_directories(batchwright_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(batchwright_flags INTERFACE BATCHWRIGHT_VERSION="${PROJECT_VERSION}")

if(NOT BATCHWRIGHT_SANITIZE STREQUAL "")
  add_compile_options(-fsanitize=${BATCHWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BATCHWRIGHT_SANITIZE})
endif()

find_program(BATCHWRIGHT_CCACHE ccache)
if(BATCHWRIGHT_CCACHE)
  # base_dir and no hash_dir: a clone in another folder reuses the objects. pch_defines: precompiled headers.
  set(BATCHWRIGHT_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${BATCHWRIGHT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BATCHWRIGHT_LAUNCHER})
  set(CMAKE_C_COMPILER_LAUNCHER ${BATCHWRIGHT_LAUNCHER})
endif()
