#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The reference run: every benchmark, then the report. To be run on a quiet machine, as root where the chases over TCP
# are to have network namespaces. On two cores it takes about 14 minutes; every step says what it took. The chases in
# Julia need one with ThreeChains.jl: TC_JULIA, or what `scripts/julia --fetch` fetched, or `julia` on the PATH.
#   bench/report/reference.sh [BUILD_DIR] [OUTPUT_DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build/release}
output=${2:-docs/results}
ifunc=$build/bin/ifunc
[ -x "$ifunc" ] || { echo "reference: $ifunc is missing; make release builds it" >&2; exit 1; }
mkdir -p "$output/data"
trap 'rm -f "$output"/data/*.tmp' EXIT
busy=$(cut -d' ' -f1 /proc/loadavg)
awk -v load="$busy" 'BEGIN { exit !(load > 0.5) }' && echo "reference: load average is $busy: not a quiet machine" >&2

# Into a file only when the run succeeded: a half-done one must not replace what was there.
measure() {
  local name=$1 begun=$SECONDS
  shift
  printf '%-26s %s\n' "$name" "ifunc bench $*"
  "$ifunc" bench "$@" --json >"$output/data/$name.tmp"
  mv "$output/data/$name.tmp" "$output/data/$name"
  printf '%-26s %d s\n' '' $((SECONDS - begun))
}

# Nothing is fetched here, and it is tried now: a Julia without the package must not end the run after ten minutes.
fetched=${TC_JULIA_PREFIX:-${XDG_CACHE_HOME:-$HOME/.cache}/threechains/julia-1.5}
if [ -z "${TC_JULIA:-}" ] && [ -e "$fetched/.threechains" ]; then export TC_JULIA=$PWD/scripts/julia; fi
julia=yes
if ! "${TC_JULIA:-julia}" -e 'using ThreeChains' >/dev/null 2>&1; then
  julia=
  echo "reference: no Julia with ThreeChains.jl: Figures 8 and 12 are not measured; scripts/julia --fetch has one" >&2
fi

begun=$SECONDS
# About how long on two cores, by the benchmarks' own estimates. Chases in flight are long because GETs gain nothing by it.
measure tsi-shm.json tsi --transport shm                                                                   # 15 s
measure tsi-tcp.json tsi --transport tcp                                                                   # 20 s
measure bulk-shm.json bulk --transport shm                                                                 # 10 s
measure bulk-tcp.json bulk --transport tcp                                                                 # 30 s
measure dapc-tcp.json dapc --transport tcp --servers 1,2,4,8,16                                            # 4 min
measure dapc-shm.json dapc --transport shm --servers 1,2,4,8,16 --depth 1,8,64,512,4096                    # 2 min
measure dapc-tcp-inflight.json dapc --transport tcp --servers 2,4,8,16 --depth 1024 --inflight 16,64,256 --runs 3  # 3 min
# Figure 11: the depth of Figures 9 and 10. More in flight there would take minutes, because of the GETs.
measure dapc-tcp-inflight-16.json dapc --transport tcp --servers 2,4,8,16 --depth 4096 --inflight 16 --runs 3  # 45 s
if [ -n "$julia" ]; then  # Figures 8 and 12; the first has two servers at the depth of the second already
  measure dapc-julia-depth.json dapc --transport tcp --servers 2 --lang julia                            # 50 s
  measure dapc-julia-servers.json dapc --transport tcp --servers 1,4,8,16 --depth 4096 --lang julia     # 30 s
fi
for transport in shm tcp; do
  measure "ucp-$transport.json" ucp-ifunc --transport "$transport"                                          # 10 s each
done
measure ucp-shm-own.json ucp-ifunc --memory own
measure ucp-shm-read.json ucp-ifunc --read
"$ifunc" bench report "$output/data" -o "$output" --data data/
printf 'altogether %d s\n' $((SECONDS - begun))
