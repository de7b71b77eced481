/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a list of edges: lines of text, two vertices each, with blanks, tabs or a comma between them. What follows them
 * on the line is ignored, and so are empty lines and those that begin with # or %.
 */
#ifndef THREECHAINS_EXAMPLE_EDGE_LIST_H
#define THREECHAINS_EXAMPLE_EDGE_LIST_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "shards.h"

enum { edge_list_line_max = 4096, edge_list_name_max = 255 };

struct edge_list {
  struct graph_edge* edges;
  uint64_t count, room;
  char** names; /* of the vertices, by number; NULL for a numbered list */
  uint32_t vertices, names_room;
  uint32_t* table; /* from a name's hash to its vertex + 1; a power of two, at most half full */
  uint64_t table_size;
};

struct edge_list_options {
  const char* program;
  int numbered;        /* vertices are numbers from 0 on, not names */
  uint32_t vertices;   /* of a numbered list; 0: one more than the largest number */
  unsigned skip_lines; /* at the beginning of the file */
  int undirected;      /* each line is an edge both ways */
};

static inline void* edge_list_grow(void* old, uint64_t bytes, const char* program) {
  void* grown = realloc(old, bytes);
  if (grown != NULL) return grown;
  fprintf(stderr, "%s: no memory for %" PRIu64 " bytes\n", program, bytes);
  exit(1);
}

static inline uint64_t edge_list_hash(const char* name) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (; *name != 0; ++name) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

/* The place in the table where the name is or belongs. */
static inline uint32_t* edge_list_place(const struct edge_list* list, const char* name) {
  uint64_t at = edge_list_hash(name);
  while (1) {
    uint32_t* place = &list->table[at++ & (list->table_size - 1)];
    if (*place == 0 || strcmp(list->names[*place - 1], name) == 0) return place;
  }
}

static inline void edge_list_grow_table(struct edge_list* list, const char* program) {
  list->table_size = list->table_size == 0 ? 1024 : list->table_size * 2;
  free(list->table);
  list->table = (uint32_t*)edge_list_grow(NULL, list->table_size * sizeof *list->table, program);
  memset(list->table, 0, list->table_size * sizeof *list->table);
  for (uint32_t i = 0; i < list->vertices; ++i) *edge_list_place(list, list->names[i]) = i + 1;
}

/* The vertex of that name, a new one when there is none yet. */
static inline uint32_t edge_list_vertex(struct edge_list* list, const char* name, const char* program) {
  if (list->vertices >= list->table_size / 2) edge_list_grow_table(list, program);
  uint32_t* place = edge_list_place(list, name);
  if (*place != 0) return *place - 1;
  if (list->vertices == list->names_room) {
    list->names_room = list->names_room == 0 ? 1024 : list->names_room * 2;
    list->names = (char**)edge_list_grow(list->names, list->names_room * sizeof *list->names, program);
  }
  const size_t size = strlen(name) + 1;
  list->names[list->vertices] = (char*)memcpy(edge_list_grow(NULL, size, program), name, size);
  *place = ++list->vertices;
  return list->vertices - 1;
}

static inline void edge_list_add(struct edge_list* list, uint32_t from, uint32_t to, const char* program) {
  if (list->count == list->room) {
    list->room = list->room == 0 ? 4096 : list->room * 2;
    list->edges = (struct graph_edge*)edge_list_grow(list->edges, list->room * sizeof *list->edges, program);
  }
  list->edges[list->count].from = from;
  list->edges[list->count++].to = to;
}

/* Says what is wrong with a line, and ends the program. */
static inline void edge_list_refuse(const struct edge_list_options* options, const char* path, uint64_t line,
                                    const char* what, const char* text) {
  fprintf(stderr, "%s: %s:%" PRIu64 ": %s", options->program, path, line, what);
  if (text != NULL) fprintf(stderr, ": '%.40s%s'", text, strlen(text) > 40 ? "..." : "");
  fputc('\n', stderr);
  exit(1);
}

static inline uint32_t edge_list_end(struct edge_list* list, const struct edge_list_options* options, const char* path,
                                     uint64_t line, const char* field) {
  if (strlen(field) > edge_list_name_max)
    edge_list_refuse(options, path, line, "a vertex has a name of more than 255 bytes", field);
  if (!options->numbered) return edge_list_vertex(list, field, options->program);
  char* end;
  errno = 0;
  const unsigned long long number = strtoull(field, &end, 10);
  if (*field < '0' || *field > '9' || *end != 0)
    edge_list_refuse(options, path, line, "not a vertex's number (names need a list without --numbered)", field);
  if (errno != 0 || number >= GRAPH_MOST_VERTICES)
    edge_list_refuse(options, path, line, "a vertex's number is larger than any can be", field);
  if (options->vertices != 0 && number >= options->vertices)
    edge_list_refuse(options, path, line, "a vertex's number is not below --vertices", field);
  if (number >= list->vertices) list->vertices = (uint32_t)number + 1;
  return (uint32_t)number;
}

static inline void edge_list_line(struct edge_list* list, const struct edge_list_options* options, const char* path,
                                  uint64_t line, char* text) {
  static const char separators[] = " \t,;\r\n";
  if (text[0] == '#' || text[0] == '%') return;
  const char* from = strtok(text, separators);
  if (from == NULL) return;
  const char* to = strtok(NULL, separators);
  if (to == NULL) edge_list_refuse(options, path, line, "an edge needs two vertices, and here is one", from);
  const uint32_t a = edge_list_end(list, options, path, line, from);
  const uint32_t b = edge_list_end(list, options, path, line, to);
  edge_list_add(list, a, b, options->program);
  if (options->undirected) edge_list_add(list, b, a, options->program);
}

/* Reads all of it. What is wrong with a file ends the program with exit code 1 and FILE:LINE. "-": standard input. */
static inline struct edge_list edge_list_read(const char* path, const struct edge_list_options* options) {
  struct edge_list list;
  memset(&list, 0, sizeof list);
  list.vertices = options->numbered ? options->vertices : 0;
  FILE* file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  char text[edge_list_line_max];
  uint64_t line = 0;
  while (file != NULL && memset(text, 1, sizeof text) != NULL && fgets(text, sizeof text, file) != NULL) {
    ++line;
    const char* end = (const char*)memchr(text, '\n', sizeof text);
    if (end == NULL && !feof(file)) edge_list_refuse(options, path, line, "a line of more than 4095 bytes", NULL);
    if (end != NULL && strlen(text) != (size_t)(end - text) + 1)
      edge_list_refuse(options, path, line, "a zero byte: this is not text", NULL);
    if (line > options->skip_lines) edge_list_line(&list, options, path, line, text);
  }
  if (file == NULL || ferror(file)) {
    fprintf(stderr, "%s: %s: %s\n", options->program, path, strerror(errno));
    exit(1);
  }
  if (file != stdin) fclose(file);
  return list;
}

static inline void edge_list_free(struct edge_list* list) {
  for (uint32_t i = 0; list->names != NULL && i < list->vertices; ++i) free(list->names[i]);
  free(list->names);
  free(list->table);
  free(list->edges);
}

#endif
