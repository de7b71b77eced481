#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   demo.sh BUILD_DIR [RECORDS]
#
# Starts a node that owns a database, feeds it a text corpus with the ifunc `insert`, changes that ifunc while the node
# runs, and compares what is in the database with the corpus. Exit code 0: they are equal.
set -euo pipefail

build=$(realpath "${1:?usage: demo.sh BUILD_DIR [RECORDS]}")
records=${2:-1000000}
here=$(dirname "$(realpath "$0")")
corpus=$here/../data/jargon.txt
work=$(mktemp -d "${TMPDIR:-/tmp}/threechains-demo.XXXXXX")
node_pid=

finish() {
  if [ -n "$node_pid" ] && kill -TERM "$node_pid" 2>/dev/null; then
    for _ in $(seq 30); do kill -0 "$node_pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$node_pid" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
give_up() { echo "demo: $*" >&2; exit 1; }

for tool in cc sqlite3 sha256sum; do
  command -v "$tool" >/dev/null || give_up "needs $tool, which is not installed"
done

say "1. Two programs and one ifunc in two versions"
cd "$here"
cc=${CC:-cc}
flags=(-std=gnu11 -O2 -Wall -Wextra -I "$here/../../include" -L "$build/lib" "-Wl,-rpath,$build/lib")
[ -z "${TC_DEMO_CFLAGS:-}" ] || read -ra more <<<"$TC_DEMO_CFLAGS"
"$cc" "${flags[@]}" ${more[@]+"${more[@]}"} dbnode.c -o "$work/dbnode" -lthreechains -lsqlite3
"$cc" "${flags[@]}" ${more[@]+"${more[@]}"} feeder.c -o "$work/feeder" -lthreechains -lzstd
echo "dbnode is linked with: $(readelf -d "$work/dbnode" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | xargs)"
echo "feeder is linked with: $(readelf -d "$work/feeder" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | xargs)"
# The compressor is the source application's own (feeder links it): it does not travel, and no target needs it.
source_side=(--extern ZSTD_compress --extern ZSTD_compressBound --extern ZSTD_isError)
run "$build/bin/ifunc" build insert.c -o "$work/insert.ifunc" "${source_side[@]}"
run "$build/bin/ifunc" build v2/insert.c -o "$work/changed.ifunc" "${source_side[@]}"
ls -l "$work"/*.ifunc | awk '{ n = split($NF, path, "/"); print "  " path[n] ": " $5 " bytes" }'

say "2. A node owns a database, and knows nothing of compression"
"$work/dbnode" "$work/records.db" >"$work/dbnode.out" 2>"$work/dbnode.err" &
node_pid=$!
for _ in $(seq 100); do
  grep -q ^ready "$work/dbnode.out" && break
  kill -0 "$node_pid" 2>/dev/null || { cat "$work/dbnode.err" >&2; give_up "dbnode did not start"; }
  sleep 0.1
done
address=$(sed -n 's/^ready //p' "$work/dbnode.out")
[ -n "$address" ] || give_up "dbnode was not ready within 10 s"
echo "dbnode (process $node_pid) listens on $address"

say "3. A source sends records, then changes the ifunc"
timeout 110 "$work/feeder" "$address" "$corpus" "$work/insert.ifunc" "$work/changed.ifunc" "$records" ||
  { cat "$work/dbnode.err" >&2; give_up "the feeder failed"; }

say "4. What is in the database, read by the sqlite3 tool while the node runs"
kill -0 "$node_pid" || give_up "dbnode died"
query() { sqlite3 -batch "$@"; }
run sqlite3 -batch -column -header "$work/records.db" \
  "SELECT id, substr(title, 1, 40) AS title, length(text) AS letters, words FROM records
   WHERE id IN (1, 2, 3) OR id > (SELECT max(id) - 3 FROM records) ORDER BY id"
rows=$(query "$work/records.db" "SELECT count(*) FROM records")
old=$(query "$work/records.db" "SELECT count(*) FROM records WHERE words IS NULL")
new=$(query "$work/records.db" "SELECT count(*) FROM records WHERE words > 0")
echo "rows by the first version (no words): $old; by the changed one (words counted): $new"

expected_rows=$(awk -v most="$records" 'BEGIN { RS = "" } NR <= most { ++n } END { print n }' "$corpus")
expected=$(awk -v most="$records" 'BEGIN { RS = ""; ORS = "\n\n" } NR <= most' "$corpus" | sha256sum | cut -d' ' -f1)
found=$(query -noheader -list -newline $'\n\n' "$work/records.db" "SELECT text FROM records ORDER BY id" | sha256sum |
  cut -d' ' -f1)
echo "rows:    corpus $expected_rows, database $rows"
echo "sha-256: corpus $expected"
echo "         database $found"
[ "$rows" = "$expected_rows" ] || give_up "the database has $rows rows when the corpus has $expected_rows paragraphs"
[ "$found" = "$expected" ] || give_up "the database's text differs from the corpus"
[ $((old + new)) = "$rows" ] && [ "$old" -gt 0 ] && [ "$new" -gt 0 ] ||
  give_up "$old rows by the old code and $new by the new one should be all $rows"

say "5. The node stops"
kill -TERM "$node_pid"
wait "$node_pid" || give_up "dbnode ended with exit code $?"
node_pid=
tail -n 1 "$work/dbnode.out"
echo "All $rows records are in the database, and equal to the corpus."
