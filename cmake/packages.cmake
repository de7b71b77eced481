# Debian packages, by `cpack` (`make deb` configures it so): one for each component that install() names.
#   threechains           runtime: the command, the library, TLS
#   threechains-jit       jit: compiles bitcode at the node
#   threechains-hpc       hpc: UCX, PMIx, the papers' API, `ifunc bench`
#   threechains-dev       devel: headers, CMake and pkg-config files, what `ifunc build` runs
#   python3-threechains   python
if(NOT TC_DEBIAN_PACKAGES)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME threechains)
set(CPACK_PACKAGE_CONTACT "The Three-Chains authors <maintainers@threechains.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_NAME} built using CMake")  # its default: then each has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL runtime jit hpc devel python)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

include(licences)
tc_third_party_licences(${PROJECT_BINARY_DIR}/debian/third-party-licences.txt)

# tc_debian(COMPONENT NAME SECTION DEPENDS SUMMARY DESCRIPTION): what dpkg is told of one package.
function(tc_debian component name section depends summary description)
  string(TOUPPER ${component} key)
  set(words ${PROJECT_BINARY_DIR}/debian/${component})
  file(MAKE_DIRECTORY ${words})
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  if(component MATCHES "^(runtime|hpc)$")  # those with libraries that programs link
    file(WRITE ${words}/triggers "activate-noawait ldconfig\n")
    set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${words}/triggers PARENT_SCOPE)
  endif()
  file(WRITE ${words}/changelog "threechains (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000\n")
  execute_process(COMMAND gzip -9nf ${words}/changelog COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${words}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Three-Chains\n\n"
    "Files: *\nCopyright: 2026 The Three-Chains authors\nLicense: Apache-2.0\n On Debian systems, the license is in /usr/share/common-licenses/Apache-2.0\n")
  install(FILES ${words}/copyright ${words}/changelog.gz ${PROJECT_BINARY_DIR}/debian/third-party-licences.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
endfunction()
set(same "threechains (= ${PROJECT_VERSION})")
tc_debian(runtime threechains net "" "moves functions between the processes of a distributed system"
"Three-Chains sends functions to where the data is. This package has the
command ifunc, which runs nodes and sends functions, and the library
libthreechains with its transports and encrypted connections.")
tc_debian(jit threechains-jit net "${same}" "compiles functions for Three-Chains at the node"
"The plug-in with which a node of Three-Chains compiles LLVM bitcode for its
own processor. Without it, a node runs functions that bring machine code.")
tc_debian(hpc threechains-hpc net "${same}" "UCX, PMIx and benchmarks for Three-Chains"
"Plug-ins of Three-Chains for the network library UCX and for clusters that
mpirun or srun starts, the interface of the research papers (libucp_ifunc),
and the command ifunc bench.")
tc_debian(devel threechains-dev libdevel "${same}, threechains-jit (= ${PROJECT_VERSION}), clang-22, lld-22, libc6-dev"
"builds functions and programs for Three-Chains"
"Headers, CMake and pkg-config files of Three-Chains, and the toolchain that
ifunc build runs.")
tc_debian(python python3-threechains python
"${same}, threechains-dev (= ${PROJECT_VERSION}), python3 (>= 3.11), python3 (<< 3.12), python3-numpy"
"Three-Chains from Python"
"Nodes, clusters and calls of Three-Chains from Python. Functions in Python
need Numba 0.68, which Debian 12 does not have: pip installs it.")
# As Debian's tools for packages in Python write them.
set(scripts ${PROJECT_BINARY_DIR}/debian/python)
file(WRITE ${scripts}/postinst "#!/bin/sh\nset -e\nif command -v py3compile >/dev/null; then py3compile -p python3-threechains; fi\n")
file(WRITE ${scripts}/prerm "#!/bin/sh\nset -e\nif command -v py3clean >/dev/null; then py3clean -p python3-threechains; fi\n")
file(CHMOD ${scripts}/postinst ${scripts}/prerm PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${scripts}/postinst;${scripts}/prerm")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS threechains-jit)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "threechains-hpc, threechains-dev, python3-threechains")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
# libpmix is in a folder of its own, and its pkg-config file says that programs shall know it.
file(WRITE ${PROJECT_BINARY_DIR}/debian/overrides "threechains-hpc: custom-library-search-path RUNPATH *pmix*\n")
install(FILES ${PROJECT_BINARY_DIR}/debian/overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
        RENAME threechains-hpc COMPONENT hpc)
include(CPack)
