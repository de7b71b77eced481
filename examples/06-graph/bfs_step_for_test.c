/* SPDX-License-Identifier: Apache-2.0
 *
 * The ifunc, compiled into its test, which is the node.
 */
#include "bfs_step.c"
