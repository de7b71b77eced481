// SPDX-License-Identifier: Apache-2.0
#include "ifunc-toolchain/toolchain.h"

int main(int argc, char** argv) { return threechains_toolchain(argc, argv); }
