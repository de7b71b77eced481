/* SPDX-License-Identifier: Apache-2.0
 *
 * How a node is to be: its options, and who takes its log. Include threechains.h, which has the conventions.
 */
#ifndef THREECHAINS_CONFIG_H
#define THREECHAINS_CONFIG_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a configuration with all defaults. The caller's: free it with tc_config_free(). One thread at a time; different
 * configurations are independent. TC_ERR_NO_MEMORY. */
TC_API tc_status_t tc_config_create(tc_config_t **config);

/* NULL is ignored. Nodes made of the configuration keep a copy, so it may be freed at once. */
TC_API void tc_config_free(tc_config_t *config);

/* Sets one option; docs/options.md and tc_option_at() list them. A repeatable option gets one value more, each other
 * one a new value. Both strings are copied.
 * TC_ERR_INVALID: there is no such option, or the value is none that it takes; the message names those that there
 * are. */
TC_API tc_status_t tc_config_set(tc_config_t *config, const char *key, const char *value);

/* Sets the options in a file in TOML: `name = value`, with strings in quotes, true and false for what is on or off, and
 * lists of strings for repeatable options (docs/options.md). Options set later by tc_config_set() replace those set
 * before; those of a file replace what was set before it.
 * TC_ERR_NOT_FOUND, TC_ERR_IO: the file cannot be read. TC_ERR_INVALID: the message names each fault in a line of its
 * own, with the line of the file, and nothing is set. TC_ERR_UNSUPPORTED: a small build, which reads no such files. */
TC_API tc_status_t tc_config_read(tc_config_t *config, const char *file);

/* Takes one line of a node's log: UTF-8, without time, level and line feed; valid until it returns. `level` is 0 debug,
 * 1 info, 2 warning or 3 error. `context` is what was given beside it. */
typedef void (*tc_log_function_t)(void *context, int level, const char *line);

/* Gives the log to `function` instead of standard error; NULL gives it back to standard error. Option `log` says which
 * levels come.
 * The function gets every line, one at a time, on whichever thread of the process has something to say: that of a call
 * into the library, the progress thread, one that compiles, or one that runs ifuncs. So it must be thread-safe towards the program, must
 * return soon, as the node stands still meanwhile, and must not call functions of its node nor throw. A program that
 * may block should queue the line, and count what it drops. (The library's own log to standard error does so: a line
 * that nobody reads in time is dropped, and the next one says how many were.)
 * `function` and `context` must stay good until all nodes made of the configuration are destroyed. */
TC_API tc_status_t tc_config_set_log_function(tc_config_t *config, tc_log_function_t function, void *context);

/* ---- What options there are ---------------------------------------------------------------------------------------
 * Constants of the library. Any thread. */

/* How many options there are. */
TC_API size_t tc_option_count(void);
/* Option `index`, from 0 on; NULL from tc_option_count() on. Those of one group stand together. */
TC_API const tc_option_t *tc_option_at(size_t index);
/* For tc_config_set(): "ring-bytes". These functions return "" for NULL. */
TC_API const char *tc_option_name(const tc_option_t *option);
/* What a value looks like: "BYTES", "MILLISECONDS", "on|off", "ADDRESS:PORT". BYTES may end in K, M or G. */
TC_API const char *tc_option_value(const tc_option_t *option);
/* The value that it has when it is not set, or in words where that comes from. "" when there is none. */
TC_API const char *tc_option_default(const tc_option_t *option);
/* One or a few sentences about what it is for. */
TC_API const char *tc_option_help(const tc_option_t *option);
/* The heading under which it belongs: "Limits". */
TC_API const char *tc_option_group(const tc_option_t *option);
/* 1 when it may be set many times, and each value adds to those before; else 0. */
TC_API int tc_option_repeatable(const tc_option_t *option);

#ifdef __cplusplus
}
#endif
#endif
