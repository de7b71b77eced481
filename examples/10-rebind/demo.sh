#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   demo.sh BUILD_DIR [SENDERS [SWAPS]]
#
# A node hashes payloads with a library that is swapped while it works: FNV-1a for XXH64 and back, under load. Prints what
# happened. Exit code 0: no call was lost, none was answered by a mixture, and the old code is gone. TC_TRANSPORT
# chooses the transport: shm (the default here) or tcp, for which the processes share a key that is made for the demo.
set -euo pipefail

build=$(realpath "${1:?usage: demo.sh BUILD_DIR [SENDERS [SWAPS]]}")
senders=${2:-3} swaps=${3:-20}
work=$(mktemp -d "${TMPDIR:-/tmp}/threechains-rebind.XXXXXX")
node_pid=

finish() {
  if [ -n "$node_pid" ] && kill -TERM "$node_pid" 2>/dev/null; then
    for _ in $(seq 30); do kill -0 "$node_pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$node_pid" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

export THREECHAINS_HOME=$work/home
"$build/bin/ifunc" key new default >"$work/key" || { echo "demo: no key could be made" >&2; exit 1; }

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
give_up() { echo "demo: $*" >&2; cat "$work/node.err" >&2 || true; exit 1; }
stat() { awk -v name="$1" '$1 == "stat" && $2 == name { print $3 }' "$work/node.out"; }
load=$build/examples/10-rebind/load
[ -x "$load" ] || { echo "demo: $load is not built (make release)" >&2; exit 1; }

say "1. A node that lets libraries export hash and hash_name, and nothing else"
"$build/bin/ifunc" serve --allow-export hash --allow-export hash_name --stats >"$work/node.out" 2>"$work/node.err" &
node_pid=$!
for _ in $(seq 200); do
  grep -q ^ready "$work/node.out" && break
  kill -0 "$node_pid" 2>/dev/null || give_up "the node did not start"
  sleep 0.1
done
address=$(sed -n 's/^ready //p' "$work/node.out")
[ -n "$address" ] || give_up "the node was not ready within 20 s"
echo "process $node_pid, at $address"

say "2. Without the library, the ifunc is refused and says what it lacks"
"$build/bin/ifunc" send "$build/ifuncs/rebind_digest.ifunc" "$address" --payload abc && give_up "it ran without a library"

say "3. Under load: $swaps swaps, each acknowledged before the next"
timeout 100 "$load" "$address" "$build/ifuncs/rebind_digest.ifunc" "$build/ifuncs/hash_fnv1a.ifunc" \
  "$build/ifuncs/hash_xxh64.ifunc" "$senders" "$swaps" || give_up "the load failed"
kill -0 "$node_pid" || give_up "the node died"

say "4. The node is the same process, and stops with this"
kill -TERM "$node_pid"
wait "$node_pid" || give_up "the node ended with exit code $?"
node_pid=
for name in executed code-loads rebinds codes retired code-evictions; do printf '  %-16s %s\n' "$name" "$(stat "$name")"; done
[ "$(stat rebinds)" = "$swaps" ] || give_up "$(stat rebinds) rebinds when there were $swaps swaps"
[ "$(stat codes)" = 2 ] || give_up "$(stat codes) codes are held when one library and one ifunc should be"
[ "$(stat retired)" = 0 ] || give_up "$(stat retired) pieces of old code are not freed"
echo "Every call was answered by one version or the other, and the old code is gone."
