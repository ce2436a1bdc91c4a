# Flags of what runs inside other people's programs: a sanitizer would have to be in the program itself.
function(heddle_guest target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(HEDDLE_DEVELOPER)
    target_compile_options(${target} PRIVATE -Werror)
    # GCC looks for memory to use again from 128 MB on: a fourteenth of its time, for files that take 0.3 to 1 GB.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=2000000)
    endif()
  endif()
endfunction()

# heddle_unite(TARGET): a dozen C++ files of a folder are compiled as one, since what they include and instantiate is most
# of what they cost. Files of other folders stay apart: a name that is private to a file says what it means in its folder.
function(heddle_unite target)
  if(NOT HEDDLE_UNITE)
    return()
  endif()
  set(most 12)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(ABSOLUTE_PATH folder NORMALIZE)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR group "0${in_${folder}} / ${most}")
    math(EXPR in_${folder} "0${in_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC says that of headers, and takes what is united for such.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Flags of every other target of heddle.
function(heddle_target target)
  heddle_guest(${target})
  heddle_unite(${target})
  if(HEDDLE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${HEDDLE_SANITIZE})
  endif()
  if(HEDDLE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# heddle_quickly_built(TARGET): for what need not be quick where tests run it. Half of the time of a file with CLI11, which
# is all code in it, is what optimises that.
function(heddle_quickly_built target)
  if(HEDDLE_DEVELOPER AND HEDDLE_TESTS AND CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# heddle_precompile(TARGET HEADERS...): large headers of others that most C++ files of the target include anyway. They
# are up to half of the time that such a file takes; those of the standard library are a fifth. Not where GCC 12
# optimises more than at -O2: there it warns of what it precompiled as of our own code.
function(heddle_precompile target)
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_LAUNCHER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# heddle_plug_in(TARGET FILE SOURCES... LIBRARIES...): FILE.so in the folder heddle/ beside libheddle.so. It exports what
# exports.map beside the caller names; with a sanitizer all, which wants its own symbols, and to see that a type is the
# same on both sides.
function(heddle_plug_in target file)
  cmake_parse_arguments(plug_in "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${target} MODULE ${plug_in_SOURCES})
  heddle_target(${target})
  target_link_libraries(${target} PRIVATE ${plug_in_LIBRARIES} Threads::Threads)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/heddle)
  if(NOT HEDDLE_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/heddle)
endfunction()
