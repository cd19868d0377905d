# tree_sitter_python: the tree-sitter C library with the Python grammar, from PyPI source distributions. One copy
# serves all presets of a clone.
set(tree_sitter_dir ${CMAKE_SOURCE_DIR}/build/third_party/tree-sitter)
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/fetch_tree_sitter ${tree_sitter_dir} ${BATCHWRIGHT_PYTHON}
  RESULT_VARIABLE tree_sitter_failed)
if(tree_sitter_failed)
  message(FATAL_ERROR "tree-sitter is missing: scripts/fetch_tree_sitter failed (see its message above)")
endif()

add_library(tree_sitter_python STATIC
  ${tree_sitter_dir}/core/lib.c ${tree_sitter_dir}/python/parser.c ${tree_sitter_dir}/python/scanner.c)
target_include_directories(tree_sitter_python SYSTEM PUBLIC ${tree_sitter_dir}/include
  PRIVATE ${tree_sitter_dir}/core ${tree_sitter_dir}/python)
# Its own code, its own warnings; optimised in every build, because an unoptimised parser makes the fuzz tests crawl.
target_compile_options(tree_sitter_python PRIVATE -w -O2)
target_compile_definitions(tree_sitter_python PRIVATE _POSIX_C_SOURCE=200112L _DEFAULT_SOURCE)
