# Finds nvcc and a GPU. Sets
#   ROOST_HAS_CUDA  CUDA is on: .cu sources are compiled
#   ROOST_HAS_GPU   this machine can also run them
#   ROOST_ONLY_PTX  they are only checked, which takes half of the time: only roost_with_cuda has them
#   ROOST_COMPRESS  the option of nvcc for small programs

set(ROOST_CUDA AUTO CACHE STRING
    "Build the cuda place: AUTO (if nvcc is found), PTX (only checked), ON or OFF")
set_property(CACHE ROOST_CUDA PROPERTY STRINGS AUTO PTX ON OFF)
set(roost_cuda_minimum 12.4)

set(ROOST_HAS_CUDA OFF)
set(ROOST_HAS_GPU OFF)
set(ROOST_ONLY_PTX OFF)
if(NOT ROOST_CUDA)
  return()
endif()

execute_process(COMMAND nvidia-smi -L OUTPUT_VARIABLE gpus RESULT_VARIABLE status ERROR_QUIET)
if(status EQUAL 0 AND gpus MATCHES "GPU 0")
  set(ROOST_HAS_GPU ON)
endif()

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(ROOST_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
               PATH_SUFFIXES bin)
  mark_as_advanced(ROOST_NVCC)
  if(ROOST_NVCC)
    set(CMAKE_CUDA_COMPILER "${ROOST_NVCC}")
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  if(ROOST_HAS_GPU)
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
endif()

include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL
                                                  roost_cuda_minimum)
    set(ROOST_HAS_CUDA ON)
    if(CMAKE_CUDA_ARCHITECTURES STREQUAL "native" AND CMAKE_CUDA_ARCHITECTURES_NATIVE STREQUAL "90-real")
      set(CMAKE_CUDA_ARCHITECTURES 90a-real)  # with the tensor cores' instructions that only Hopper has
    endif()
    if(ROOST_CUDA STREQUAL "PTX")
      set(ROOST_ONLY_PTX ON)
      if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
        add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>")
      endif()
    endif()
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
      set(ROOST_COMPRESS -Xfatbin=-compress-all)
    else()
      set(ROOST_COMPRESS --compress-mode=size)
    endif()
    set(why "nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
  else()
    set(why "${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION} is older than ${roost_cuda_minimum}")
  endif()
else()
  set(why "no working nvcc on PATH or in /usr/local/cuda/bin")
endif()
if(NOT ROOST_HAS_CUDA)
  set(ROOST_HAS_GPU OFF)
  if(NOT ROOST_CUDA MATCHES "^(AUTO|PTX)$")
    message(FATAL_ERROR "ROOST_CUDA is ${ROOST_CUDA}, but ${why}: install CUDA ${roost_cuda_minimum} "
                        "or newer, or set ROOST_CUDA=OFF")
  endif()
endif()
message(STATUS "roost: CUDA ${ROOST_HAS_CUDA} (${why}), GPU ${ROOST_HAS_GPU}")
