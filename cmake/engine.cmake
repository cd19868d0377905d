# batchwright-engine: the only program that sees libtorch. ATen and autograd headers only: torch/torch.h costs 36 s a file.
if(NOT Torch_DIR)
  execute_process(COMMAND ${BATCHWRIGHT_PYTHON} -c
    "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin) if s else '')"
    OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(torch_folder STREQUAL "")
    message(FATAL_ERROR "No torch beside ${BATCHWRIGHT_PYTHON}: run scripts/setup, or configure with -DBATCHWRIGHT_ENGINE=OFF")
  endif()
  list(APPEND CMAKE_PREFIX_PATH ${torch_folder}/share/cmake)
endif()
find_package(Torch REQUIRED)

batchwright_engine(USES base model hardware data profile run)

if(BATCHWRIGHT_TESTS)
  # The peer is slow under a sanitizer that it knows nothing of, and so is MiniLM: the small models say enough there.
  set(reference_models --minilm --steps 12 --support ${CMAKE_SOURCE_DIR}/docs/support.md)
  if(NOT BATCHWRIGHT_SANITIZE STREQUAL "")
    set(reference_models --steps 4)
  endif()
  add_test(NAME engine.against_transformers
    COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/engine/against_transformers.py
            $<TARGET_FILE:batchwright-engine> ${reference_models})
  set_tests_properties(engine.against_transformers PROPERTIES LABELS engine TIMEOUT 3000 RUN_SERIAL TRUE)
  add_test(NAME engine.resume
    COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/engine/resume_test.py $<TARGET_FILE:batchwright-engine>)
  set_tests_properties(engine.resume PROPERTIES LABELS engine TIMEOUT 600)
endif()
