# What `heddle run` and what it loads into programs are built with, beyond the flags of every target.

# The launcher says hello to the arbiter for the program that it becomes.
target_sources(heddle_launcher PRIVATE ${PROJECT_SOURCE_DIR}/src/launch/hello.c)

# musl where there is one, because glibc asks the processor for its features at each start, which takes half a
# millisecond in a virtual machine.
string(REPLACE gnu musl musl_folder "${CMAKE_LIBRARY_ARCHITECTURE}")
find_file(MUSL_SPECS musl-gcc.specs PATHS /usr/lib/${musl_folder} /usr/local/musl/lib NO_DEFAULT_PATH)
if(MUSL_SPECS AND CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT HEDDLE_SANITIZE)
  target_compile_options(heddle_launcher PRIVATE -specs=${MUSL_SPECS})
  target_link_options(heddle_launcher PRIVATE -specs=${MUSL_SPECS})
endif()

# A tail call in every build (see the file).
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/launch/deepbind.c DIRECTORY ${PROJECT_SOURCE_DIR}/src/launch
  PROPERTIES COMPILE_OPTIONS "-O2;-fno-sanitize=all")
