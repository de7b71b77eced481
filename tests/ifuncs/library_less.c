// SPDX-License-Identifier: Apache-2.0
//
// A version that lacks what others use.
const char greeting_version[] = "less";
