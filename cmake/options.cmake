# Compiler settings that every target of ours shares.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
# tc_install_rpath(FOLDER): targets that follow in this CMakeLists.txt are installed to FOLDER below the prefix. They find our
# libraries from there, wherever the prefix is moved to.
function(tc_install_rpath folder)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})  # then it is not below the prefix
    set(CMAKE_INSTALL_RPATH ${CMAKE_INSTALL_LIBDIR} PARENT_SCOPE)
  else()
    file(RELATIVE_PATH to_libraries /prefix/${folder} /prefix/${CMAKE_INSTALL_LIBDIR})
    string(REGEX REPLACE "/$" "" rpath "$ORIGIN/${to_libraries}")
    set(CMAKE_INSTALL_RPATH ${rpath} PARENT_SCOPE)
  endif()
endfunction()
tc_install_rpath(${CMAKE_INSTALL_LIBDIR})

# Paths below the source tree do not count, so that a fresh clone finds what another one compiled.
find_program(TC_CCACHE ccache)
if(TC_CCACHE)
  set(TC_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true
    CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=true ${PROJECT_SOURCE_DIR}/cmake/compile ${TC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${TC_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TC_LAUNCHER})
endif()

# A shared library that lacks a symbol fails here, not at its first user. (A sanitizer's runtime is in the program.)
if(NOT TC_SANITIZE)
  string(APPEND CMAKE_SHARED_LINKER_FLAGS " -Wl,-z,defs")
endif()

# No stubs between our code and that of other libraries, and their addresses in one table: with more nodes than cores each
# page of either is found cold at every message.
string(APPEND CMAKE_SHARED_LINKER_FLAGS " -Wl,-z,now")

# Its own parts come before those that LD_LIBRARY_PATH names for another program.
if(TC_SELF_CONTAINED)
  foreach(kind IN ITEMS EXE SHARED MODULE)
    string(APPEND CMAKE_${kind}_LINKER_FLAGS " -Wl,--disable-new-dtags")
  endforeach()
endif()

include(CheckCXXCompilerFlag)
set(CMAKE_REQUIRED_FLAGS -Werror)  # clang for riscv64 only warns that it knows nothing of it
check_cxx_compiler_flag(-fno-plt TC_CAN_DO_WITHOUT_PLT)
unset(CMAKE_REQUIRED_FLAGS)

add_library(tc_options INTERFACE)
if(TC_CAN_DO_WITHOUT_PLT)
  target_compile_options(tc_options INTERFACE -fno-plt)
endif()
# A designated initializer says what differs from the defaults: leaving the rest out is the point of it.
target_compile_options(tc_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
target_include_directories(tc_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(TC_SANITIZE)
  target_compile_options(tc_options INTERFACE
    -fsanitize=${TC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tc_options INTERFACE -fsanitize=${TC_SANITIZE})
  # The sanitizers' own options go into each program.
  target_sources(tc_options INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${PROJECT_SOURCE_DIR}/tests/sanitizers/defaults.c>)
  if(TC_SANITIZE MATCHES "undefined")
    # vptr needs the RTTI that LLVM is built without; function reads in front of the called code, where injected
    # code has nothing.
    target_compile_options(tc_options INTERFACE -fno-sanitize=vptr,function)
  endif()
endif()
foreach(device IN LISTS TC_WITHOUT)
  string(TOUPPER ${device} device)
  target_compile_definitions(tc_options INTERFACE TC_WITHOUT_${device})
endforeach()
if(TC_FUZZ)
  target_compile_options(tc_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(TC_SMALL)
  target_compile_options(tc_options INTERFACE -Oz -ffunction-sections -fdata-sections -flto)
  # relr: the table of pointers to be moved with the program, an eighth of its usual size (glibc 2.36 and newer).
  target_link_options(tc_options INTERFACE -flto -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--icf=all
    -Wl,-z,pack-relative-relocs -Wl,--build-id=none -s)
endif()

# Parts that read foreign bytes also refuse silent narrowing.
add_library(tc_foreign_bytes INTERFACE)
target_compile_options(tc_foreign_bytes INTERFACE -Wconversion -Wsign-conversion)

# tc_may_include(what...): what this folder's own code includes of other folders below src/, and of libraries that few
# folders know (tests/structure holds the code against it). It says so to readers and to that test; it builds nothing.
function(tc_may_include)
endfunction()

# tc_module(NAME sources...): one folder of src/, a static library that goes into libthreechains.
function(tc_module name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC tc_options)
  tc_use_precompiled(${name} tc_precompiled)
endfunction()

# Keys of the tests in C++: of a folder of this build, never the user's own. Nodes of one test know each other by the key,
# over TCP. (Tests that are run by pytest have a folder each: tests/conftest.py.)
set(TC_TEST_HOME ${PROJECT_BINARY_DIR}/test-home)
if(TC_TESTS AND NOT EXISTS ${TC_TEST_HOME}/keys/default)
  set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_)
  string(RANDOM LENGTH 42 ALPHABET ${letters} seed)
  string(RANDOM LENGTH 1 ALPHABET AEIMQUYcgkosw048 end)  # of 32 bytes the last letter has four bits
  file(MAKE_DIRECTORY ${TC_TEST_HOME}/keys)
  file(TOUCH ${TC_TEST_HOME}/keys/default)
  file(CHMOD ${TC_TEST_HOME}/keys/default PERMISSIONS OWNER_READ OWNER_WRITE)
  file(WRITE ${TC_TEST_HOME}/keys/default "threechains-private-key 1 ${seed}${end}\n")
  file(CHMOD ${TC_TEST_HOME} ${TC_TEST_HOME}/keys PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()
if(TC_TESTS)
  add_library(tc_test_main STATIC ${PROJECT_SOURCE_DIR}/src/base/testing/test_main.cc)
  target_link_libraries(tc_test_main PUBLIC tc_options GTest::gtest GTest::gmock)
  target_compile_definitions(tc_test_main PRIVATE TC_TEST_HOME="${TC_TEST_HOME}")
endif()

# Everything labelled tsan, so that the thread sanitizer's build need not build the rest.
add_custom_target(tc_tsan_tests)
# And everything labelled cross.
add_custom_target(tc_cross_tests)

# tc_test(NAME sources... LIBS libraries... [LABELS labels...] [TIMEOUT seconds] [PRECOMPILED headers]): one GoogleTest program; each case
# is a test of its own. Labels with a meaning for scripts/test:
#   tsan           runs under the thread sanitizer as well
#   release_only   says nothing under a sanitizer (timings, memory figures)
#   measured       judges speed, CPU or memory: never beside another test
#   cross          is built for other processors too and runs there under an emulator; everything else is not
function(tc_test name)
  if(NOT TC_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT;PRECOMPILED" "LIBS;LABELS" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED tc_precompiled_test)
  endif()
  if(CMAKE_CROSSCOMPILING AND NOT "cross" IN_LIST ARG_LABELS)
    return()
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tc_options ${ARG_LIBS} tc_test_main)
  if(NOT "measured" IN_LIST ARG_LABELS)
    target_link_libraries(${name} PRIVATE tc_test_options)
    tc_use_precompiled(${name} ${ARG_PRECOMPILED})
  endif()
  set(properties)
  if(ARG_TIMEOUT)
    list(APPEND properties TIMEOUT ${ARG_TIMEOUT})
  endif()
  if("measured" IN_LIST ARG_LABELS)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  if("cross" IN_LIST ARG_LABELS)
    add_dependencies(tc_cross_tests ${name})
  endif()
  if("tsan" IN_LIST ARG_LABELS)
    add_dependencies(tc_tsan_tests ${name})
  endif()
  # Values in names would be addresses, which change.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_LIST ${name}_cases PROPERTIES ${properties})
  if(ARG_LABELS)  # gtest_discover_tests() takes one label only; ctest reads this file behind its list of cases
    set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(WRITE ${labels} "foreach(case IN LISTS ${name}_cases)
  set_tests_properties(\"\${case}\" PROPERTIES LABELS \"${ARG_LABELS}\")\nendforeach()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
  endif()
endfunction()
