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
