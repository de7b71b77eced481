// SPDX-License-Identifier: Apache-2.0
extern "C" int next();
static int started = next();
extern "C" int constructor_main() { return started; }
