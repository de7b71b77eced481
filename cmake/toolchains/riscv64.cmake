# For riscv64: cmake --preset riscv64, after scripts/sysroot riscv64.
set(TC_CROSS_ARCH riscv64)
# trixie's spdlog calls fmt in a way that clang 22 does not take for a constant expression. Format strings are still
# checked by the native build.
set(CMAKE_CXX_FLAGS_INIT "-DFMT_CONSTEVAL=")
# Its GoogleTest libraries hold relocations of gcc's that lld refuses: build the sources that come with them.
set(TC_GTEST_SOURCES_IN_SYSROOT usr/src/googletest)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
