set(ROOST_UNITY 0 CACHE STRING "Compile so many files of the command at a time")

# roost_unity(target): its sources may be compiled together, and then share headers and instances.
function(roost_unity target)
  if(ROOST_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${ROOST_UNITY})
  endif()
endfunction()

# roost_program(target): what every program of this tree shares.
function(roost_program target)
  target_link_libraries(${target} PRIVATE roost::roost)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")  # apps/ and papers/
  target_compile_options(
    ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>"
                      "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra;${ROOST_COMPRESS}>")
  if(ROOST_HAS_CUDA)
    if(NOT ROOST_ONLY_PTX)
      target_compile_definitions(${target} PRIVATE ROOST_WITH_CUDA=1)
    endif()
    # For host sources that ask the CUDA runtime.
    target_include_directories(
      ${target} SYSTEM
      PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}>")
  endif()
endfunction()

# roost_only_checked(target [PTX]): its CUDA sources are compiled, but no program is made of them. nvcc 13
# stops before it makes PTX, unless PTX is given: that takes a quarter of its time, and finds mistakes in
# assembly alone. (It could stop sooner, by -fdevice-syntax-only, but then kernels might call functions of the
# host.) Nobody runs the code, so it is optimised less, which takes another seventh.
function(roost_only_checked target)
  if("PTX" IN_LIST ARGN OR CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
    set_target_properties(${target} PROPERTIES CUDA_PTX_COMPILATION ON)
    return()
  endif()
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES OFF)
  foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
    string(REGEX REPLACE "-.*" "" number "${architecture}")
    target_compile_options(${target} PRIVATE -ltoir "SHELL:-Xcicc -O1"
                           "--generate-code=arch=compute_${number},code=lto_${number}")
  endforeach()
endfunction()

# roost_batches(result name SIZE source...): files that compile so many CUDA sources each: they share headers
# and instances.
function(roost_batches result name size)
  set(files)
  list(LENGTH ARGN left)
  while(left GREATER 0)
    list(SUBLIST ARGN 0 ${size} batch)
    list(REMOVE_ITEM ARGN ${batch})
    list(LENGTH ARGN left)
    list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE content)
    list(JOIN content "" content)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}_${left}_left.cu")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${content}")
    list(APPEND files "${file}")
  endwhile()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# roost_ptx(target SIZE source...): CUDA sources that are only checked, so many at a time.
function(roost_ptx target size)
  roost_batches(files ${target} ${size} ${ARGN})
  add_library(${target} OBJECT ${files})
  roost_only_checked(${target})
  roost_program(${target})
endfunction()
