#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# program_test.sh IFUNC_TOOLCHAIN EXAMPLES: the program as people meet it.
set -u
tool=$1 examples=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() { echo "FAILED: $1"; cat out err; exit 1; }
run() { "$@" >out 2>err; }

run "$tool" build "$examples/01-increment/tsi.c" || fail "tsi.c does not build"
[ -s tsi.ifunc ] || fail "no tsi.ifunc here"
[ "$(wc -l <out)" = 1 ] || fail "not one line"
grep -q '^tsi.ifunc: .* bytes for x86_64-linux-gnu, aarch64-linux-gnu' out || fail "not what was built"
[ -s err ] && fail "something on standard error"

run "$tool" build "$examples/02-hello/hello.c" -o other.ifunc --target aarch64-linux-gnu --no-object -q -- -DX=1 ||
  fail "hello.c does not build"
[ -s other.ifunc ] || fail "no other.ifunc"
[ -s out ] && fail "--quiet prints"

echo 'void foo_main(void *p, unsigned long n, void *t) { nowhere(); }' >foo.c
echo 'old' >foo.ifunc
run "$tool" build foo.c --target x86_64-linux-gnu -- -Wno-everything -Wno-error -std=gnu89 && fail "foo.c was built"
[ "$(wc -l <err)" = 1 ] && grep -q "^ifunc: foo.c:1: 'nowhere' is called but" err || fail "not one line that names it"
[ "$(cat foo.ifunc)" = old ] || fail "a failed build touched the file that was there"

run env TC_CLANG=/nonexistent/clang "$tool" build foo.c && fail "built without a compiler"
grep -q "^ifunc: TC_CLANG is set to '/nonexistent/clang'" err || fail "missing compiler"
run env PATH=/nonexistent "$tool" build "$examples/01-increment/tsi.c" && fail "built without a compiler on the path"
grep -q "^ifunc: there is no clang-22 or clang on the PATH; install clang-22" err || fail "missing compiler on the path"
echo "all well"
