// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole program `ifunc-toolchain`, which a self-contained build has in libthreechains_jit.so. Returns the exit status.
extern "C" __attribute__((visibility("default"))) int threechains_toolchain(int argc, char** argv);
