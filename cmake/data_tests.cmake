# The readers of hostile input: the corpus of tests/cases/data/corpus and a few mutations of it are a test; for longer,
# run build/address/reader_fuzz tests/cases/data/corpus --seconds 120.
add_executable(reader_fuzz ${CMAKE_SOURCE_DIR}/tests/data/reader_fuzz.cc)
target_link_libraries(reader_fuzz PRIVATE batchwright_data batchwright_model batchwright_flags)
add_test(NAME data.reader_fuzz COMMAND reader_fuzz ${CMAKE_SOURCE_DIR}/tests/cases/data/corpus)
set_tests_properties(data.reader_fuzz PROPERTIES LABELS data TIMEOUT 300
  ENVIRONMENT FUZZ_INPUT=${CMAKE_BINARY_DIR}/reader_fuzz.input)

# What Transformers' run_qa, run_ner and run_clm make of the same texts with the same tokenizer.
add_test(NAME data.tokenising
  COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/data/tokenising_test.py)
set_tests_properties(data.tokenising PROPERTIES LABELS data TIMEOUT 300)
