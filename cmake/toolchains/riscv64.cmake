# For riscv64: cmake --preset riscv64, after scripts/sysroot riscv64.
set(TC_CROSS_ARCH riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
