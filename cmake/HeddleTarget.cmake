# Flags of what runs inside other people's programs: a sanitizer would have to be in the program itself.
function(heddle_guest target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  # It sees overlaps in strings that are added up where there are none (gcc's bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(HEDDLE_DEVELOPER)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Flags of every other target of heddle.
function(heddle_target target)
  heddle_guest(${target})
  if(HEDDLE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${HEDDLE_SANITIZE})
  endif()
  if(HEDDLE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
