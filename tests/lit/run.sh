#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD_DIRECTORY [LIT OPTION...]: all tests of this folder. 77, and a reason, when LLVM's test tools are missing.
set -u
build=$(realpath "$1")
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

tool() {
  local name
  for name in "$1-22" "/usr/lib/llvm-22/bin/$1" "$1"; do
    command -v "$name" && return
  done
  echo "SKIP: there is no $1; install llvm-22-tools"
  exit 77
}
lit=$(tool lit) || { echo "$lit"; exit 77; }
filecheck=$(tool FileCheck) || { echo "$filecheck"; exit 77; }
invert=$(tool not) || { echo "$invert"; exit 77; }
split=$(tool split-file) || { echo "$split"; exit 77; }

scratch=$build/lit
mkdir -p "$scratch"
exec "$lit" -v -j 2 --param "ifunc=$build/bin/ifunc" --param "filecheck=$filecheck" --param "not=$invert" \
  --param "split=$split" --param "scratch=$scratch" "$@" "$here"
