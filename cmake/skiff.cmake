# skiff_library(NAME [LINK libs...]): every *.cc of the folder but tests becomes the library
# skiff_NAME; every x_test.cc becomes part of the test program NAME_test, and with SKIFF_FUZZ every
# x_fuzz.cc a program of its own, built by the target `fuzzers`. Files named by ALONE are compiled
# without the precompiled header and outside of batches.
if(SKIFF_FUZZ)
  add_custom_target(fuzzers)
endif()

# Objects come from ccache where it is installed. Folders of this clone are hashed relative to it, so
# that clones share their objects; lists of dependencies, which name all that the precompiled header
# is made of, take the place of preprocessing. CCACHE_DISABLE=1 in the environment turns it off.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
      CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE})
endif()

# Most of the time to compile a small file goes into the headers that all of them share. So every
# preset has two precompiled headers, one for libraries and one for tests, and presets that build
# everything from nothing also compile several files as one (SKIFF_UNITY files at a time; 0 turns
# it off, so that an edit compiles one file). tools/standalone checks that each file compiles alone.
set(SKIFF_UNITY 0 CACHE STRING "How many source files are compiled as one; 0 for each by itself")

# skiff_precompiled makes the header for libraries, skiff_precompiled_test the one for tests.
function(skiff_precompiled_headers)
  foreach(kind "" _test)
    set(target skiff_precompiled${kind})
    set(source ${CMAKE_BINARY_DIR}/precompiled/${target}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Only carries the precompiled header.\n")
    add_library(${target} STATIC ${source})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE Boost::json fmt::fmt)
    # In brackets, so that the generated header names no folder of this machine. Without the time
    # stamp the same headers give the same bytes.
    target_precompile_headers(${target} PRIVATE <cmake/precompiled${kind}.h>)
    target_compile_options(${target} PRIVATE SHELL:-Xclang\ -fno-pch-timestamp)
    # ccache reads this instead of the header's bytes, which name this folder. It may be constant:
    # all that goes into the bytes is in the list of dependencies of each object, too.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum CONTENT "see the dependencies\n")
  endforeach()
  target_link_libraries(skiff_precompiled_test PRIVATE GTest::gtest)
endfunction()

# skiff_sources(TARGET KIND sources...): adds sources to a target, each by itself or in batches that
# are compiled as one file, with the precompiled header of KIND, "" or "_test".
function(skiff_sources target kind)
  list(LENGTH ARGN count)
  if(SKIFF_UNITY EQUAL 0 OR count LESS 2)
    set(files ${ARGN})
  else()
    skiff_batches(${target} ${ARGN})
  endif()
  target_sources(${target} PRIVATE ${files})
  # CMake's own REUSE_FROM names the header by its absolute path, and then no clone finds in ccache
  # what another has compiled.
  set(header CMakeFiles/skiff_precompiled${kind}.dir/cmake_pch.hxx.pch)
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS -Winvalid-pch -include-pch ${header})
  set_property(SOURCE ${files} APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/${header})
endfunction()

# Sets `files` to the batches of these sources: each includes up to SKIFF_UNITY of them, by paths
# relative to the source tree, so that clones share what ccache has compiled.
function(skiff_batches target)
  # Batches of equal size: 17 files make two of 9 and 8, not one of 16 and one of 1.
  list(LENGTH ARGN count)
  math(EXPR batches "(${count} + ${SKIFF_UNITY} - 1) / ${SKIFF_UNITY}")
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  math(EXPR last "${count} - 1")
  set(files "")
  foreach(begin RANGE 0 ${last} ${size})
    list(SUBLIST ARGN ${begin} ${size} batch)
    list(LENGTH files index)
    set(text "")
    foreach(source ${batch})
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${source})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${target}_${index}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  set(files ${files} PARENT_SCOPE)
endfunction()

function(skiff_library name)
  cmake_parse_arguments(ARG "" "" "LINK;TEST_LINK;SUBFOLDERS;ALONE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  foreach(sub ${ARG_SUBFOLDERS})
    file(GLOB more CONFIGURE_DEPENDS ${sub}/*.cc)
    list(APPEND sources ${more})
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  add_library(skiff_${name} STATIC)
  foreach(file ${ARG_ALONE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    target_sources(skiff_${name} PRIVATE ${file})
  endforeach()
  skiff_sources(skiff_${name} "" ${sources})
  target_include_directories(skiff_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(skiff_${name} PUBLIC ${ARG_LINK})
  if(tests)
    add_executable(${name}_test)
    skiff_sources(${name}_test _test ${tests})
    target_include_directories(${name}_test PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name}_test PRIVATE skiff_${name} ${ARG_TEST_LINK} GTest::gtest GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
  if(SKIFF_FUZZ)
    foreach(source ${fuzzers})
      get_filename_component(fuzzer ${source} NAME_WE)
      add_executable(${fuzzer} ${source})
      target_link_libraries(${fuzzer} PRIVATE skiff_${name} -fsanitize=fuzzer)
      set_target_properties(${fuzzer} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
      add_dependencies(fuzzers ${fuzzer})
    endforeach()
  endif()
endfunction()
