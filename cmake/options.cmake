# Compiler settings that every target of ours shares.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(TC_CCACHE ccache)
if(TC_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${TC_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TC_CCACHE})
endif()

add_library(tc_options INTERFACE)
target_compile_options(tc_options INTERFACE -Wall -Wextra -Werror)
target_include_directories(tc_options INTERFACE
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
if(TC_SANITIZE)
  target_compile_options(tc_options INTERFACE
    -fsanitize=${TC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tc_options INTERFACE -fsanitize=${TC_SANITIZE})
endif()

# Parts that read foreign bytes also refuse silent narrowing.
add_library(tc_foreign_bytes INTERFACE)
target_compile_options(tc_foreign_bytes INTERFACE -Wconversion -Wsign-conversion)

# tc_module(NAME sources...): one folder of src/, a static library that goes into libthreechains.
function(tc_module name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC tc_options)
endfunction()

# tc_test(NAME sources... LIBS libraries...): one GoogleTest program; each case is a test of its own.
function(tc_test name)
  if(NOT TC_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tc_options ${ARG_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
endfunction()
