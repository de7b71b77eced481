# tc_add_ifunc(NAME SOURCE [WITH NAME ...] [AGAINST NAME ...] [OPTIONS ...] [CLANG_FLAGS ...])
#
# Builds SOURCE (whatever `ifunc build` takes) to the ifunc NAME, as ${CMAKE_BINARY_DIR}/ifuncs/NAME.ifunc, whenever it, its .deps
# file or a header that it includes changes. The target is called ifunc-NAME and is part of `all`; its property
# IFUNC_FILE is the file's path. WITH names other ifuncs, added before, that travel along, AGAINST
# libraries, added before, that it uses. OPTIONS are those of `ifunc build`: --target TRIPLE, --no-object, --extern SYMBOL, ...;
# with --name among them the ifunc is called so, and only the file and the target NAME.
#
# Inside Three-Chains' own build the toolchain is a target; in a project that uses an installed copy, set
# ThreeChains_IFUNC_TOOLCHAIN to the program (the CMake package does).
function(tc_add_ifunc name source)
  cmake_parse_arguments(ARG "" "" "WITH;AGAINST;OPTIONS;CLANG_FLAGS" ${ARGN})
  get_filename_component(source "${source}" ABSOLUTE)
  if(TARGET ifunc-toolchain)
    set(tool $<TARGET_FILE:ifunc-toolchain>)
    set(tool_dependency ifunc-toolchain)
  elseif(ThreeChains_IFUNC_TOOLCHAIN)
    set(tool ${ThreeChains_IFUNC_TOOLCHAIN})
    set(tool_dependency ${ThreeChains_IFUNC_TOOLCHAIN})
  else()
    message(FATAL_ERROR "tc_add_ifunc(${name}): there is no toolchain; set ThreeChains_IFUNC_TOOLCHAIN")
  endif()

  set(output ${CMAKE_BINARY_DIR}/ifuncs/${name}.ifunc)
  set(headers ${CMAKE_BINARY_DIR}/ifuncs/${name}.d)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/ifuncs)
  set(dependencies ${source} ${tool_dependency})
  string(REGEX REPLACE "\\.[^./]*$" ".deps" libraries "${source}")
  if(EXISTS ${libraries})
    list(APPEND dependencies ${libraries})
  endif()
  foreach(companion IN LISTS ARG_WITH)
    set(file ${CMAKE_BINARY_DIR}/ifuncs/${companion}.ifunc)
    list(APPEND ARG_OPTIONS --with ${file})
    list(APPEND dependencies ${file})
  endforeach()
  foreach(library IN LISTS ARG_AGAINST)
    set(file ${CMAKE_BINARY_DIR}/ifuncs/${library}.ifunc)
    list(APPEND ARG_OPTIONS --against ${file})
    list(APPEND dependencies ${file})
  endforeach()
  set(depfile)
  if(source MATCHES "\\.(c|cc|cpp|cxx|C)$")  # clang says which headers it read
    list(PREPEND ARG_CLANG_FLAGS -MD -MF ${headers} -MT ${output})
    set(depfile DEPFILE ${headers})
  endif()
  if(NOT "--name" IN_LIST ARG_OPTIONS)
    list(PREPEND ARG_OPTIONS --name ${name})
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${tool} build ${source} --quiet -o ${output} ${ARG_OPTIONS}
            -- ${ARG_CLANG_FLAGS}
    DEPENDS ${dependencies}
    ${depfile}
    COMMENT "Building ifunc ${name}"
    VERBATIM)
  add_custom_target(ifunc-${name} ALL DEPENDS ${output})
  set_target_properties(ifunc-${name} PROPERTIES IFUNC_FILE ${output})
endfunction()
