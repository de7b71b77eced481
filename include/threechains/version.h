/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of these headers. The build, tc_version() and the packages for other languages have theirs from here.
 */
#ifndef THREECHAINS_VERSION_H
#define THREECHAINS_VERSION_H

#define TC_VERSION_MAJOR 0
#define TC_VERSION_MINOR 1
#define TC_VERSION_PATCH 0

#endif
