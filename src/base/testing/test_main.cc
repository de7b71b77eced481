// SPDX-License-Identifier: Apache-2.0
//
// Every test program begins here, started by ctest or by hand: with the keys of this build, never with the user's own.
#include <gmock/gmock.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("THREECHAINS_HOME", TC_TEST_HOME, 1);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
