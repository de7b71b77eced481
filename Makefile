# The few commands a person types. `make help` lists them; CMakePresets.json is behind them.
.DEFAULT_GOAL := help
.PHONY: help demo demo-graph test check fuzz simulate mutants bench results format format-check tidy setup release wheel deb tarball clean
SECONDS_PER_TARGET ?= 600
MODULE ?= src/node
COUNT ?= 10
SEED ?= 1
SEEDS ?= 1-1000
NODES ?= 3-16
STEPS ?= 2000

help:            ## this list
	@sed -nE 's/^([a-z-]+): .*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

DEMO = ifunc ifunc-toolchain threechains threechains_jit

demo: setup      ## a function travels to a running database: builds, runs, shows what happened
	@scripts/build release $(DEMO)
	@examples/03-sqlite-zstd/demo.sh build/release

demo-graph: setup  ## breadth-first search over four servers that know nothing of graphs
	@scripts/build release $(DEMO)
	@examples/06-graph/demo.sh build/release

test: setup      ## everything: unit and integration tests, sanitizers, short fuzzing, gcc, an installed copy
	@scripts/test

check: setup     ## for daily work: the format and the tests of one process, in some five minutes
	@scripts/test format quick

bench: release   ## target-side increment against UCX Active Messages (docs/measuring.md)
	@build/release/bin/ifunc bench tsi $(ARGS)

results: release ## the reference run: every benchmark, then docs/results/ (quiet machine, about 14 minutes)
	@bench/report/reference.sh

fuzz: setup      ## long fuzzing: SECONDS_PER_TARGET=600, TARGETS="fuzz_bundle …"
	@scripts/fuzz --seconds $(SECONDS_PER_TARGET) $(TARGETS)

simulate: setup  ## a cluster in one thread, for each seed (docs/simulation.md): SEEDS=1-1000 NODES=3-16 STEPS=2000 ARGS=--shrink, or ARGS="--scale 1000"
	@scripts/build release simulate
	@build/release/bin/simulate --seeds $(SEEDS) --nodes $(NODES) --steps $(STEPS) $(ARGS)

mutants: setup   ## deliberate faults, and whether the tests notice: MODULE=src/node COUNT=10 SEED=1 (no part of `make test`)
	@scripts/mutants --module $(MODULE) --count $(COUNT) --seed $(SEED)

format:          ## applies .clang-format
	@scripts/format

format-check:    ## says what `make format` would change
	@scripts/format --check

tidy: setup      ## clang-tidy over all our sources (package clang-tidy-22)
	@scripts/tidy

release: setup   ## the optimised build: build/release/bin/ifunc
	@scripts/build release product

wheel:           ## dist/threechains-*.whl for this machine's Python, with all that it needs inside (some 10 minutes)
	@scripts/setup wheel
	@scripts/wheel

deb:             ## dist/*.deb for Debian 12: runtime, JIT, HPC, development, Python
	@scripts/setup deb
	@scripts/deb

tarball:         ## dist/threechains-*-small-*.tar.gz: the node without LLVM for x86-64, aarch64 and riscv64
	@scripts/setup
	@scripts/tarball

setup:           ## installs missing packages (Debian 12)
	@scripts/setup

clean:           ## removes build/
	rm -rf build
