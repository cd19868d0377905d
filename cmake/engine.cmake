# batchwright-engine: the only program that sees libtorch. ATen and autograd headers only: torch/torch.h costs 36 s a file.
include(cmake/torch.cmake)

batchwright_engine(USES base model hardware data profile run)

if(BATCHWRIGHT_TESTS)
  # The peer is slow under a sanitizer that it knows nothing of, and so is MiniLM: the small models say enough there.
  set(reference_models --minilm --steps 6 --jobs 2 --support ${CMAKE_SOURCE_DIR}/docs/support.md)
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
  foreach(check same_training tasks resume failures torchrun)
    add_test(NAME engine.devices_${check}
      COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/engine/devices_test.py $<TARGET_FILE:batchwright-engine>
              --only ${check})
    set_tests_properties(engine.devices_${check} PROPERTIES LABELS engine TIMEOUT 600 RUN_SERIAL TRUE)
  endforeach()
  add_test(NAME engine.precision
    COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/engine/precision_test.py $<TARGET_FILE:batchwright-engine>)
  add_test(NAME engine.network_faults
    COMMAND ${BATCHWRIGHT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/engine/network_faults.py $<TARGET_FILE:batchwright-engine>)
  set_tests_properties(engine.precision engine.network_faults PROPERTIES
    LABELS engine TIMEOUT 900 RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
endif()
