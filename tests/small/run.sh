#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh SOURCE BUILD: builds the preset `small` where people do, lets it run its first ifunc, and checks what it must keep to: the
# program's size, its memory, and that nothing of LLVM is in it. BUILD has the ordinary commands and examples.
# docs/small-nodes.md says what is counted and why.
set -u
source=$1 build=$2
small=$source/build/small
program_limit=2000000      # bytes
memory_limit=4000000       # bytes

fail() { echo "FAILED: $1"; exit 1; }

command -v clang++-22 >/dev/null || { echo "SKIP: clang++-22 is not installed"; exit 77; }
log=$build/small.log
(cd "$source" && cmake --preset small && cmake --build --preset small) >"$log" 2>&1 ||
  { tail -30 "$log"; fail "it does not build"; }
program=$small/bin/ifunc

size=$(stat -c %s "$program")
echo "program: $size bytes"
[ "$size" -le "$program_limit" ] || fail "the program has $size bytes when at most $program_limit are allowed"
libraries=$(ldd "$program")
for unwanted in LLVM libucp libstdc++ libfmt libspdlog libzstd libsodium; do
  grep -q "$unwanted" <<<"$libraries" && fail "the program needs $unwanted"
done

work=$(mktemp -d)
children=()
trap 'kill "${children[@]}" 2>/dev/null; rm -rf "$work"' EXIT
export TC_TRANSPORT=tcp

# serve NAME PROGRAM OPTION…: starts a node; its address is in $work/NAME.
serve() {
  local name=$1
  "$2" serve --listen 127.0.0.1:0 --name "$name" --ready-file "$work/$name" "${@:3}" >"$work/$name.out" &
  children+=($!)
  for _ in $(seq 100); do [ -s "$work/$name" ] && return; sleep 0.1; done
  fail "node $name is not ready after 10 s"
}
send() { "$build/bin/ifunc" send "$1" "$(cat "$work/$2")" --payload you; }

serve drive "$program"
node=$!
answer=$(send "$build/ifuncs/hello.ifunc" drive) || fail "no answer"
[ "$answer" = "Hello, you, from node 0" ] || fail "it answered '$answer'"

# Its own: anonymous memory, its code arena and rings, and the resident part of its program. In KiB.
own=$(awk '/^[0-9a-f]+-[0-9a-f]+ /{name=$6} /^Rss:/{rss=$2}
           /^Anonymous:/{ own += name ~ /bin\/ifunc$|^\/memfd|^\/dev\/shm/ ? rss : $2 } END{print own}' \
  "/proc/$node/smaps")
all=$(awk '/^Rss:/{print $2}' "/proc/$node/smaps_rollup")
echo "resident after the first ifunc: $own KiB of its own, $all KiB with the pages of shared libraries"
[ $((own * 1024)) -le "$memory_limit" ] || fail "$own KiB are resident when at most $memory_limit bytes are allowed"

# Bitcode alone is refused with what to do, or compiled by a helper.
"$build/bin/ifunc" build "$source/examples/02-hello/hello.c" --no-object -q -o "$work/bitcode.ifunc" || fail "build"
send "$work/bitcode.ifunc" drive 2>"$work/err" && fail "bitcode ran"
grep -q "no LLVM" "$work/err" || { cat "$work/err"; fail "the refusal does not say why"; }
serve aide "$build/bin/ifunc" --compile-for user
serve helped "$program" --compile-at "$(cat "$work/aide")"
answer=$(send "$work/bitcode.ifunc" helped) || fail "no answer"
[ "$answer" = "Hello, you, from node 0" ] || fail "compiled elsewhere, it answered '$answer'"
echo "all well"
