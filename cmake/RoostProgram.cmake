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

# roost_ptx(target SIZE source...): CUDA sources that are compiled to PTX alone, so many at a time: they share
# headers and instances.
function(roost_ptx target size)
  set(files)
  list(LENGTH ARGN left)
  while(left GREATER 0)
    list(SUBLIST ARGN 0 ${size} batch)
    list(REMOVE_ITEM ARGN ${batch})
    list(LENGTH ARGN left)
    list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE content)
    list(JOIN content "" content)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}_${left}_left.cu")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${content}")
    list(APPEND files "${file}")
  endwhile()
  add_library(${target} OBJECT ${files})
  set_target_properties(${target} PROPERTIES CUDA_PTX_COMPILATION ON)
  roost_program(${target})
endfunction()
