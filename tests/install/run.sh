#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build, moves the installed tree, and builds and runs tests/install/project against it, as a stranger would.
#   run.sh BUILD_DIR CMAKE
set -euo pipefail
build=$1 cmake=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { echo "-- $*"; }

step "install, then move what was installed"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
for file in bin/ifunc include/threechains/threechains.h include/threechains/threechains.hpp include/threechains/ifunc.h; do
  [ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
[ ! -e "$prefix/include/threechains/.clang-format" ] || { echo "installed what is ours alone"; exit 1; }
if grep -rIl --exclude-dir=bin "$build" "$prefix"; then
  echo "these installed files know where they were built"
  exit 1
fi

step "the project outside the tree, by find_package"
cp -r "$here/project" "$work/project"
"$cmake" -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" 2>&1 ||
  { cat "$work/configure.log"; exit 1; }
"$cmake" --build "$work/project/build" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
ifuncs=$work/project/build/ifuncs
"$work/project/build/greet_c" "$ifuncs"
"$work/project/build/greet_cpp" "$ifuncs"

step "the same programs, by pkg-config"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name threechains.pc)")
flags=$(pkg-config --cflags --libs threechains)
library_dir=$(pkg-config --variable=libdir threechains)
# shellcheck disable=SC2086  # several flags
cc -std=c11 -Wall -Wextra -Werror "$work/project/greet_c.c" -o "$work/by_pkgconfig_c" $flags
# shellcheck disable=SC2086
c++ -std=c++20 -Wall -Wextra -Werror "$work/project/greet_cpp.cc" -o "$work/by_pkgconfig_cpp" $flags
LD_LIBRARY_PATH=$library_dir "$work/by_pkgconfig_c" "$ifuncs"
LD_LIBRARY_PATH=$library_dir "$work/by_pkgconfig_cpp" "$ifuncs"

if pkg-config --exists ucp_ifunc; then
  step "programs for the papers' API"
  "$here/ucp/run.sh" "$prefix" "$work"
fi

step "the installed command"
"$prefix/bin/ifunc" inspect "$ifuncs/greet.ifunc" >/dev/null
echo "ok"
