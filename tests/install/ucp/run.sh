#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs for the papers' API against an installed copy: they know UCX's header; what is added is one header put in
# front and one library. Those of the papers' listings, and all examples. Called by ../run.sh.
#   ucp/run.sh PREFIX WORK     PKG_CONFIG_PATH leads to the prefix
set -euo pipefail
prefix=$1 work=$2/ucp
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir "$work"
cp "$here"/*.[ch] "$work"
cp -r "$here/../../../examples/ucp_ifunc" "$work/examples"
read -ra ucx <<<"$(pkg-config --cflags --libs ucx)"
read -ra added <<<"-include threechains/ucp_ifunc.h $(pkg-config --cflags --libs ucp_ifunc)"

if grep -n '#include' "$work/form_2022.c" "$work/paper_listing.c" "$work/examples/peer.h" | grep threechains; then
  echo "a program of the papers' time knows nothing of threechains/"
  exit 1
fi
compile() {  # SOURCE OPTIONS...
  cc -std=gnu11 -Wall -Wextra -Werror -I"$work/examples" "$1" -o "$work/$(basename "$1" .c)" "${@:2}" \
    "${ucx[@]}" "${added[@]}"
}
compile "$work/form_2022.c"
for example in pingpong ring chase_nodes without_slots; do compile "$work/examples/$example.c"; done
compile "$work/paper_listing.c" -DTHREECHAINS_UCP_IFUNC_2021
compile "$work/examples/listing_1_4.c" -DTHREECHAINS_UCP_IFUNC_2021

# A program in C++ as well.
printf '#include <ucp/api/ucp.h>\nint main() { return ucp_register_ifunc(nullptr, {}, nullptr) == UCS_OK; }\n' \
  >"$work/form.cc"
c++ -std=c++11 -Wall -Wextra -Werror "$work/form.cc" -o "$work/form_cpp" "${ucx[@]}" "${added[@]}"

echo "-- their ifuncs, by the installed command"
mkdir "$work/ifuncs" "$work/loose"
"$prefix/bin/ifunc" build --quiet "$work/paq8px.c" -o "$work/ifuncs/paq8px.ifunc" -- -I"$work"
"$prefix/bin/ifunc" build --quiet "$work/examples/count.c" -o "$work/ifuncs/count.ifunc"

export LD_LIBRARY_PATH UCX_IFUNC_LIB_DIR="$work/ifuncs" UCX_TLS=posix,self,tcp UCX_WARN_UNUSED_ENV_VARS=n
LD_LIBRARY_PATH=$(pkg-config --variable=libdir ucp_ifunc)
timeout 60 "$work/form_cpp"
timeout 60 "$work/paper_listing"
timeout 60 "$work/pingpong" 100 20

echo "-- loose bitcode, packed by the installed toolchain"
triple=$(uname -m)-linux-gnu
"${CLANG:-clang-22}" --target="$triple" -O2 -fPIC -c -emit-llvm "$work/bytes.c" -o "$work/loose/bytes.$triple.bc"
echo c >"$work/loose/bytes.deps"
UCX_IFUNC_LIB_DIR=$work/loose timeout 60 "$work/form_2022"
timeout 60 "$work/form_2022" "$work/loose/bytes.$triple.bc" "$triple"
