# For aarch64: cmake --preset aarch64, after scripts/sysroot aarch64.
set(TC_CROSS_ARCH aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
