# Precompiled headers: most of a file's compile time goes into what it includes, the same for all files of a kind. Targets of
# one kind share one; a file still includes what it needs (the presets gcc, small and fuzz have none, and would tell).
#
# The file has paths of its build folder in it, so ccache must neither keep it nor ask for its bytes: cmake/compile.
option(TC_PRECOMPILED "Precompile headers (clang)" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR TC_SMALL OR TC_FUZZ)
  set(TC_PRECOMPILED OFF)
endif()

# tc_precompiled_headers(NAME LIBS libraries... HEADERS headers...): what targets may share by tc_use_precompiled(TARGET NAME).
function(tc_precompiled_headers name)
  if(NOT TC_PRECOMPILED)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")  # CMake wants one
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE tc_options ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

function(tc_use_precompiled target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
    get_target_property(in_c ${target} SOURCES)
    list(FILTER in_c INCLUDE REGEX "\\.c$")
    set_source_files_properties(${in_c} ${PROJECT_SOURCE_DIR}/tests/sanitizers/defaults.c PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# For what people run.
set(common
  <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <deque> <expected> <filesystem> <functional> <map> <memory>
  <mutex> <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <spdlog/logger.h>)
tc_precompiled_headers(tc_precompiled LIBS tc_text HEADERS ${common})
if(TC_JIT OR TC_TOOLCHAIN)
  add_library(tc_llvm_headers INTERFACE)
  target_include_directories(tc_llvm_headers SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  tc_precompiled_headers(tc_precompiled_llvm LIBS tc_text tc_llvm_headers HEADERS ${common}
    <llvm/IR/Constants.h> <llvm/IR/IRBuilder.h> <llvm/IR/Instructions.h> <llvm/IR/Module.h>)
endif()

# Programs are compiled in another way than libraries, as their addresses are their own.
add_library(tc_program_options INTERFACE)
target_compile_options(tc_program_options INTERFACE -fPIE)
tc_precompiled_headers(tc_precompiled_tool LIBS tc_text tc_program_options CLI11::CLI11 HEADERS ${common} <CLI/CLI.hpp>)

# Tests are compiled as fast as can be.
if(TC_TESTS)
  add_library(tc_test_options INTERFACE)
  target_compile_options(tc_test_options INTERFACE -O0)
  target_link_libraries(tc_test_options INTERFACE tc_text tc_program_options GTest::gtest GTest::gmock)
  tc_precompiled_headers(tc_precompiled_test LIBS tc_test_options HEADERS ${common} <gmock/gmock.h> <gtest/gtest.h>)
endif()
