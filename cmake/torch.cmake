# The torch wheel beside BATCHWRIGHT_PYTHON: a target `torch`, TORCH_LIBRARIES and TORCH_CXX_FLAGS.
# find_package(Torch) of a CUDA wheel insists on CUDA's compiler, which the engine has no use for (it has no kernels in
# CUDA's language): there the wheel's libraries are linked by targets of our own.
option(BATCHWRIGHT_CUDA "Link the CUDA wheel of torch beside BATCHWRIGHT_PYTHON" OFF)

if(NOT Torch_DIR)
  execute_process(COMMAND ${BATCHWRIGHT_PYTHON} -c
    "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin) if s else '')"
    OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(torch_folder STREQUAL "")
    message(FATAL_ERROR "No torch beside ${BATCHWRIGHT_PYTHON}: run scripts/setup, or configure with -DBATCHWRIGHT_ENGINE=OFF")
  endif()
  list(APPEND CMAKE_PREFIX_PATH ${torch_folder}/share/cmake)
endif()

if(NOT BATCHWRIGHT_CUDA)
  find_package(Torch REQUIRED)
  return()
endif()

get_filename_component(site_packages ${torch_folder} DIRECTORY)
# The wheels of CUDA's libraries, which torch's wheel depends on: nvidia/cu13, nvidia/nccl, ...
file(GLOB nvidia_includes ${site_packages}/nvidia/*/include)
file(GLOB nvidia_libraries ${site_packages}/nvidia/*/lib)
add_library(torch INTERFACE IMPORTED)
set_target_properties(torch PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${torch_folder}/include;${torch_folder}/include/torch/csrc/api/include;${nvidia_includes}"
  INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_C10D_NCCL")
foreach(library torch_cuda torch_cpu torch c10_cuda c10)
  if(NOT EXISTS ${torch_folder}/lib/lib${library}.so)
    message(FATAL_ERROR "${torch_folder} is not a CUDA wheel: it has no lib/lib${library}.so")
  endif()
  list(APPEND torch_shared_libraries ${torch_folder}/lib/lib${library}.so)
endforeach()
# libtorch_cuda registers its kernels when it is loaded; nothing in the engine names a symbol of it.
target_link_libraries(torch INTERFACE -Wl,--no-as-needed ${torch_shared_libraries} -Wl,--as-needed)
set(TORCH_LIBRARIES torch)
set(TORCH_CXX_FLAGS "")
list(APPEND CMAKE_BUILD_RPATH ${torch_folder}/lib ${nvidia_libraries})
foreach(folder ${nvidia_libraries})
  add_link_options(-Wl,-rpath-link,${folder})
endforeach()
