# Tests that run processes are pytest's: conftest.py has their fixtures, the package kit what they share.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import pytest" RESULT_VARIABLE TC_PYTEST_MISSING OUTPUT_QUIET ERROR_QUIET)
if(TC_PYTEST_MISSING)
  message(WARNING "${Python3_EXECUTABLE} has no pytest (Debian: python3-pytest): tests that run processes are left out")
  add_test(NAME pytest_is_missing
    COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED [1] pytest: ${Python3_EXECUTABLE} has no pytest (python3-pytest)")
  set_tests_properties(pytest_is_missing PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")
endif()
# ctest kills this process when its time is up, and nothing else: no other program may stand in front of it.
set(TC_PYTEST ${Python3_EXECUTABLE} -B -m pytest -q)

set(TC_PYTEST_ENVIRONMENT "TC_BUILD_DIR=${PROJECT_BINARY_DIR}" "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1")
if(TC_SANITIZE)
  # UCX patches mmap and its like to hear of unmapped memory; where a sanitizer took them over, it patches that into
  # a crash when the process starts.
  list(APPEND TC_PYTEST_ENVIRONMENT "UCX_MEM_MMAP_HOOK_MODE=none" "CC=${CMAKE_C_COMPILER}"
    "TC_DEMO_CFLAGS=-fsanitize=${TC_SANITIZE}")
endif()

# One test of ctest's: `target` is a file, or a file and a case.
function(tc_add_pytest name target labels timeout)
  add_test(NAME ${name} COMMAND ${TC_PYTEST} ${target})
  set_tests_properties(${name} PROPERTIES
    LABELS "integration;${labels}" TIMEOUT ${timeout} ENVIRONMENT "${TC_PYTEST_ENVIRONMENT}"
    SKIP_REGULAR_EXPRESSION "(^|\n)[0-9]+ skipped")
  if("measured" IN_LIST labels)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# tc_pytest(FOLDER [WHOLE] [LABELS labels...] [TIMEOUT seconds]): the files test_*.py of a folder. Each case is a test of
# its own, FILE.CASE or FILE.CASE/PARAMETER. With WHOLE each file is one test, for quick cases that share what they need.
# The timeout is for what hangs, on a machine that is busy with other things; a case may have a longer one (pytest.ini).
function(tc_pytest folder)
  cmake_parse_arguments(ARG "WHOLE" "TIMEOUT" "LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(TC_PYTEST_MISSING)
    return()
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${folder}/test_*.py)
  if(ARG_WHOLE)
    foreach(file IN LISTS files)
      cmake_path(GET file STEM LAST_ONLY stem)
      tc_add_pytest(${stem} ${file} "${ARG_LABELS}" ${ARG_TIMEOUT})
    endforeach()
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 ${TC_PYTEST} --collect-only --list-cases ${files}
    OUTPUT_VARIABLE output RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "pytest cannot list the cases of ${folder}:\n${output}")
  endif()
  string(REGEX MATCHALL "CASE [^\n]+" cases "${output}")
  foreach(line IN LISTS cases)
    string(REGEX REPLACE "^CASE " "" line "${line}")
    string(REPLACE " " ";" labels "${line}")
    list(POP_FRONT labels file case)
    set(timeout ${ARG_TIMEOUT})
    if("${labels}" MATCHES "limit=([0-9]+)")
      set(timeout ${CMAKE_MATCH_1})
      list(FILTER labels EXCLUDE REGEX "^limit=")
    endif()
    cmake_path(GET file STEM LAST_ONLY stem)
    string(REGEX REPLACE "\\[(.*)\\]$" "/\\1" name "${stem}.${case}")
    tc_add_pytest(${name} "${file}::${case}" "${labels};${ARG_LABELS}" ${timeout})
  endforeach()
endfunction()
