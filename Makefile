# make demo and make test do all the set-up on a fresh Debian 12.
SHELL := /bin/bash

.PHONY: help setup build demo test test-all test-cluster test-frameworks fuzz bench format tidy release clean

help:
	@echo "make demo      build, start Skiff, train on several workers, kill it in the middle, go on"
	@echo "make test      what each change must pass: style, unit tests (ASan+UBSan; TSan for store, net, node),"
	@echo "               simulator, real clients"
	@echo "make test-all  adds the long groups: real clients on ASan, crash rounds, planted bugs, fuzzers, a real"
	@echo "               kube-apiserver, upstream's suites, conformance, frameworks (4 GB the first time)"
	@echo "make test-cluster  of these the ones beside a real kube-apiserver, upstream's and conformance"
	@echo "make test-frameworks  of these real TensorFlow, PyTorch, XGBoost and MPI jobs under kill -9"
	@echo "make fuzz      fuzzers on everything that parses, five minutes each"
	@echo "make build     leaves the binary at build/skiff"
	@echo "make bench     figures of docs/benchmarks.md"
	@echo "make format | tidy | release | clean"
	@echo "docs/checks.md says when each group last passed."

setup:
	@tools/setup

build:
	@tools/setup build
	@cmake --preset release > build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }; rm -f build.log
	@cmake --build --preset release --target skiff
	@ln -sfn release/src/skiff build/skiff

demo: build
	@tools/demo

test: setup
	@tools/test tidy build asan tsan sim e2e

test-all: setup
	@tools/test tidy build asan tsan sim e2e e2e_asan crash fuzz mutants cluster upstream conformance conformance_pods \
	  frameworks

test-cluster: setup
	@tools/test build cluster upstream conformance conformance_pods

test-frameworks: setup
	@tools/test build frameworks

fuzz: setup
	@tools/fuzz

bench: build
	@tools/bench

format: setup
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs clang-format-19 -i

tidy: setup
	@tools/tidy && tools/tidy --compile

release: build
	@tools/release

clean:
	rm -rf build
