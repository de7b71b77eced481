// SPDX-License-Identifier: Apache-2.0
// A library: a number that says which version answered, and how often this version was asked.
#ifdef LESS
int version_something_else(void) { return 0; }
#else
unsigned long version_calls;

int version_number(void) {
  ++version_calls;
  return VERSION;
}
#endif
