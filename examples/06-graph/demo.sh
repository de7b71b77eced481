#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   demo.sh BUILD_DIR [SCALE]
#
# Searches the flights between US airports, and a generated graph with 2^SCALE vertices (17), on four servers that know
# nothing of graphs. Exit code 0: every edge agreed with what was found.
set -euo pipefail

build=$(realpath "${1:?usage: demo.sh BUILD_DIR [SCALE]}")
scale=${2:-17}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/threechains-graph.XXXXXX")
trap 'rm -rf "$work"' EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "1. Programs, and the code that will travel"
cd "$here"
cc=${CC:-cc}
flags=(-std=gnu11 -O2 -Wall -Wextra -I "$here/../../include" -L "$build/lib" "-Wl,-rpath,$build/lib")
[ -z "${TC_DEMO_CFLAGS:-}" ] || read -ra more <<<"$TC_DEMO_CFLAGS"
for name in make_graph make_shards; do "$cc" "${flags[@]}" ${more[@]+"${more[@]}"} $name.c -o "$work/$name"; done
for name in bfs sample; do "$cc" "${flags[@]}" ${more[@]+"${more[@]}"} $name.c -o "$work/$name" -lthreechains; done
cd "$work"
for name in graph_info bfs_step bfs_read sample_step; do run "$build/bin/ifunc" build "$here/$name.c" -o $name.ifunc; done

# search DIRECTORY COMMAND: runs it beside four servers, each with its shard and memory for one search.
search() {
  local memory
  memory=$(sed -n 's/^scratch //p' "$1.size")
  run "$build/bin/ifunc" cluster 4 --data "graph=$1/{id}.shard:ro" --scratch "scratch=$memory" -- sh -c "$2"
}

say "2. Flights between US airports: two questions to the same servers, and the second is one that nobody foresaw"
./make_shards --skip-lines 1 "$here/../data/flights-airport.csv" 4 flights | tee flights.size
search flights './bfs --shards flights BTM && ./sample --shards flights --hops 2 --fan 3 BTM'

say "3. A generated graph with 2^$scale vertices, searched twice: the second search finds links and code there"
./make_graph --scale "$scale" >edges
./make_shards --numbered --vertices $((1 << scale)) --undirected edges 4 generated | tee generated.size
# From a vertex with edges: a good part of such a graph's vertices has none.
source=$(awk '$1 != $2 { print $1; exit }' edges)
search generated "./bfs --shards generated $source && ./bfs --shards generated $source" | tee generated.found
! grep -q '^0 vertices reached' generated.found || { echo "demo: the search found nothing" >&2; exit 1; }
