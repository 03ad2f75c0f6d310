# make demo and make test do all the set-up on a fresh Debian 12.
SHELL := /bin/bash

.PHONY: help setup build demo test test-all test-cluster test-frameworks fuzz bench format tidy release clean

help:
	@echo "make demo      build, start Skiff, train on several workers, kill it in the middle, go on"
	@echo "make test      unit tests (ASan+UBSan; TSan for store, net, node), simulator, real clients"
	@echo "make test-all  adds the heavy groups: real clients on ASan, crashes, planted bugs, a real kube-apiserver, MPI"
	@echo "make test-cluster  beside a real kube-apiserver: the same requests to both, our controllers on it,"
	@echo "               upstream's tests of training jobs and its conformance specs on ours"
	@echo "make test-frameworks  real TensorFlow, PyTorch, XGBoost and MPI jobs under kill -9, and how long users wait;"
	@echo "               test-all has MPI and XGBoost of them: the others download some 4 GB the first time"
	@echo "make fuzz      fuzzers on everything that parses, five minutes each"
	@echo "make build     leaves the binary at build/skiff"
	@echo "make bench     figures of docs/benchmarks.md"
	@echo "make format | tidy | release | clean"

setup:
	@tools/setup

build: setup
	@cmake --preset release > build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }; rm -f build.log
	@cmake --build --preset release --target skiff
	@ln -sfn release/src/skiff build/skiff

demo: build
	@tools/demo

test: setup
	@tools/test tidy build asan tsan sim e2e

test-all: setup
	@tools/test tidy build asan tsan sim e2e e2e_asan crash mutants cluster upstream frameworks_small

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
	@tools/tidy

release: build
	@tools/release

clean:
	rm -rf build
