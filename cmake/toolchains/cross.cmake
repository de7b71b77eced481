# Builds for another processor with clang and a sysroot of Debian's packages (scripts/sysroot), and runs the tests
# under qemu. aarch64.cmake and riscv64.cmake set TC_CROSS_ARCH and include this file.
#
# Of this machine only the compiler, the linker and LLVM's headers are used: everything that is linked, and everything
# else that is included, comes from the sysroot.
set(TC_CROSS_TRIPLE ${TC_CROSS_ARCH}-linux-gnu)
string(TOUPPER ${TC_CROSS_ARCH} arch)
if(NOT TC_SYSROOT)
  if(DEFINED ENV{TC_SYSROOT_${arch}})
    set(sysroot $ENV{TC_SYSROOT_${arch}})
  elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(sysroot $ENV{XDG_CACHE_HOME}/threechains/sysroot-${TC_CROSS_ARCH})
  else()
    set(sysroot $ENV{HOME}/.cache/threechains/sysroot-${TC_CROSS_ARCH})
  endif()
  set(TC_SYSROOT ${sysroot} CACHE PATH "Where `scripts/sysroot ${TC_CROSS_ARCH}` has put the packages")
endif()
if(NOT EXISTS ${TC_SYSROOT}/usr/include)
  message(FATAL_ERROR "no sysroot at ${TC_SYSROOT}: run `scripts/sysroot ${TC_CROSS_ARCH}` first")
endif()
if(TC_GTEST_SOURCES_IN_SYSROOT)
  set(TC_GTEST_SOURCES ${TC_SYSROOT}/${TC_GTEST_SOURCES_IN_SYSROOT})
endif()
# What CMake tries out while it looks at the compiler must find the sysroot too.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TC_SYSROOT)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TC_CROSS_ARCH})
set(CMAKE_SYSROOT ${TC_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${TC_CROSS_TRIPLE})
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_COMPILER_TARGET ${TC_CROSS_TRIPLE})
endforeach()
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
# Libraries of a library's own need not be named: the sysroot holds them where its loader looks, the linker does not.
foreach(kind IN ITEMS EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld -Wl,--allow-shlib-undefined")
endforeach()

set(CMAKE_FIND_ROOT_PATH ${TC_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TC_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${TC_SYSROOT}/usr/lib/${TC_CROSS_TRIPLE}/pkgconfig:${TC_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_PATH})

find_program(TC_QEMU qemu-${TC_CROSS_ARCH}-static)
if(TC_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${TC_QEMU} -L ${TC_SYSROOT})
endif()
