# The commands of the README. Each installs what it needs (Debian, apt-get), builds and runs.
JOBS := $(shell nproc)
.DEFAULT_GOAL := help
.PHONY: help demo test bench asan tsan fuzz format

help:
	@echo "make demo    build, then run real programs side by side with and without heddle"
	@echo "make test    build and run every test"
	@echo "make bench   build and run the benchmarks with their peers"
	@echo "make asan | tsan | fuzz   the tests under sanitizers; the fuzzers for a minute each"

demo:
	@scripts/setup build demo
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@build/release/bin/heddle demo --out demo-report

test:
	@scripts/setup build test
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j $(JOBS)
	@ctest --preset dev

bench:
	@scripts/setup build bench demo
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@build/release/bin/heddle bench

asan tsan:
	@scripts/setup build test
	@cmake --preset $@ >/dev/null
	@cmake --build --preset $@ -j $(JOBS)
	@ctest --preset $@

fuzz:
	@scripts/setup build test fuzz
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j $(JOBS)
	@tests/fuzz/run build/fuzz 60

format:
	@scripts/check-format --fix
