# What an installed copy consists of:
#   bin/ifunc                           the command
#   lib/libthreechains.so               the library; libthreechains_jit.so, libthreechains_ucx.so, libthreechains_tls.so,
#                                       libthreechains_pmix.so and libthreechains_metrics.so beside it, loaded on demand
#   lib/libucp_ifunc.so                 the papers' API, for programs that own their UCX context
#   libexec/threechains/ifunc-toolchain what `ifunc build` runs: the part that needs LLVM
#   libexec/threechains/threechains-cell  the process that a node starts to run ifuncs in
#   libexec/threechains/ifunc-bench     what `ifunc bench` runs: the part that needs UCX
#   libexec/threechains/ifunc-top       what `ifunc top` runs: the part that needs ncurses
#   include/threechains/                headers: threechains.h and what it includes, threechains.hpp, benchmark.h,
#                                       ifunc.h, arrow.h, ucp_ifunc.h
#   lib/systemd/system/threechains.service  a node as a service, and threechains.socket
#   share/threechains/monitoring        a dashboard for Grafana, alerts and a configuration for Prometheus
#   share/man/man1, share/bash-completion, share/zsh, share/fish   manual pages and completion, from the command's own words
#   lib/pkgconfig/*.pc, lib/cmake/ThreeChains/      how others find it
# (Debian's packages have the plug-ins in lib/threechains: they are libraries of nobody else.)
include(CMakePackageConfigHelpers)

# The things people run, without the tests: `cmake --build --preset release --target product`.
add_custom_target(product)
set(tc_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ThreeChains)

# From the folder of the .pc files, which is deeper where the libraries are in one folder for each kind of processor.
file(RELATIVE_PATH tc_prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" tc_prefix_from_pc ${tc_prefix_from_pc})

if(TARGET threechains)
  add_dependencies(product threechains)
  # Only the C API leaves the library; templates of the standard library would otherwise.
  target_link_options(threechains PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/threechains.map)
  set_property(TARGET threechains APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/threechains.map)
  install(TARGETS threechains LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT devel)
endif()
if(TARGET ucp_ifunc)
  add_dependencies(product ucp_ifunc)
  target_link_options(ucp_ifunc PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/ucp_ifunc.map)
  set_property(TARGET ucp_ifunc APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/ucp_ifunc.map)
  install(TARGETS ucp_ifunc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT hpc NAMELINK_COMPONENT devel)
  configure_file(cmake/ucp_ifunc.pc.in ucp_ifunc.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ucp_ifunc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
endif()
if(TARGET threechains_jit)
  add_dependencies(product threechains_jit)
endif()
foreach(plugin IN ITEMS threechains_tls threechains_ucx threechains_pmix threechains_metrics)  # installed where they are built
  if(TARGET ${plugin})
    add_dependencies(product ${plugin})
  endif()
endforeach()
foreach(program IN ITEMS ifunc ifunc-toolchain ifunc-bench ifunc-top threechains-cell)  # installed where they are built, in tools/ and src/cell/
  if(TARGET ${program})
    add_dependencies(product ${program})
  endif()
endforeach()
if(TARGET ifunc-words)
  add_dependencies(product ifunc-words)
endif()
if(TC_TOOLCHAIN AND (TC_EXAMPLES OR TC_BENCH))
  # With the folders below: the READMEs of the examples name what is built there.
  get_property(folders DIRECTORY examples PROPERTY SUBDIRECTORIES)
  foreach(folder IN ITEMS ${PROJECT_SOURCE_DIR}/examples LISTS folders)
    get_property(examples DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    list(FILTER examples EXCLUDE REGEX "_test$")
    if(examples)
      add_dependencies(product ${examples})
    endif()
  endforeach()
endif()

# What `ifunc build foo.rs` compiles along.
install(DIRECTORY bindings/rust/threechains-ifunc DESTINATION ${CMAKE_INSTALL_DATADIR}/threechains/rust COMPONENT devel)
install(DIRECTORY include/threechains DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# What `ifunc build` gives to compilers: a folder with our headers alone. With the whole of /usr/include, the headers of this
# machine would come before those of the processor that is compiled for.
if(TC_TOOLCHAIN)
  file(RELATIVE_PATH headers /prefix/${CMAKE_INSTALL_DATADIR}/threechains/include /prefix/${CMAKE_INSTALL_INCLUDEDIR}/threechains)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/headers-alone)
  file(CREATE_LINK ${headers} ${PROJECT_BINARY_DIR}/headers-alone/threechains SYMBOLIC)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/headers-alone/ DESTINATION ${CMAKE_INSTALL_DATADIR}/threechains/include COMPONENT devel)
endif()
if(NOT TC_SMALL AND TARGET ifunc)
  # It names the program by its whole path. `cmake --install --prefix` may choose another than the configured one, which is made
  # then. What packages are made from is installed to a folder that they do not name.
  set(tc_service_program ${CMAKE_INSTALL_FULL_BINDIR}/ifunc)
  configure_file(cmake/threechains.service.in threechains.service @ONLY)
  set(unit ${PROJECT_BINARY_DIR}/threechains.service)
  if(NOT TC_DEBIAN_PACKAGES)
    set(unit ${PROJECT_BINARY_DIR}/installed/threechains.service)
    install(CODE "set(tc_service_program \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/ifunc\")
      configure_file(\"${PROJECT_SOURCE_DIR}/cmake/threechains.service.in\" \"${unit}\" @ONLY)")
  endif()
  install(FILES ${unit} cmake/threechains.socket DESTINATION lib/systemd/system)
endif()
if(TARGET threechains_metrics)
  install(DIRECTORY monitoring/ DESTINATION ${CMAKE_INSTALL_DATADIR}/threechains/monitoring)
endif()
if(TC_SMALL)  # scripts/tarball takes them along
  include(licences)
  tc_third_party_licences(${PROJECT_BINARY_DIR}/licences.txt)
endif()
configure_file(cmake/threechains.pc.in threechains.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/threechains.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)

configure_package_config_file(cmake/ThreeChainsConfig.cmake.in ThreeChainsConfig.cmake
  INSTALL_DESTINATION ${tc_package_dir} 
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBEXECDIR)
write_basic_package_version_file(ThreeChainsConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ThreeChainsConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ThreeChainsConfigVersion.cmake
        DESTINATION ${tc_package_dir} COMPONENT devel)
install(FILES cmake/ThreeChainsIfunc.cmake DESTINATION ${tc_package_dir} COMPONENT devel)
