# roost_program(target): what every program of this tree shares.
function(roost_program target)
  target_link_libraries(${target} PRIVATE roost::roost)
  target_compile_options(
    ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>"
                      "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra;--compress-mode=size>")
  if(ROOST_HAS_CUDA)
    target_compile_definitions(${target} PRIVATE ROOST_WITH_CUDA=1)
    # For host sources that ask the CUDA runtime.
    target_include_directories(
      ${target} SYSTEM
      PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}>")
  endif()
endfunction()
