# Millrace: the only entry point. `make help` lists the targets.
#
# The rooms add to this file through fragments (see FRAGMENTS below); docs/developing.md tells how.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
SHELL := /bin/bash

BUILD ?= build
TEST ?=
MILLRACE_DATA ?= ../shared/data
export MILLRACE_DATA

# Two jobs unless the caller chose: every machine this must run on has two cores.
ifeq ($(MAKELEVEL),0)
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j2
endif
endif

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
AR ?= ar
PYTHON ?= python3
VERILATOR ?= verilator
YOSYS ?= yosys
PKG_CONFIG ?= pkg-config

OPT ?= -O2
INCLUDES = -I. -Ihost/include
# -ffp-contract=off: a fused multiply-add would round once where the golden models round twice.
WARN = -Wall -Wextra -Werror
CFLAGS_ALL = -std=gnu11 $(OPT) -g $(WARN) -ffp-contract=off -fPIC $(INCLUDES) $(CFLAGS)
CXXFLAGS_ALL = -std=gnu++17 $(OPT) -g $(WARN) -ffp-contract=off -fPIC $(INCLUDES) $(CXXFLAGS)

JANSSON_LIBS := $(shell $(PKG_CONFIG) --libs jansson 2>/dev/null)
CPPUTEST_CFLAGS := $(shell $(PKG_CONFIG) --cflags cpputest 2>/dev/null)
CPPUTEST_LIBS := $(shell $(PKG_CONFIG) --libs cpputest 2>/dev/null)

# What the fragments fill in.
ALL :=
TESTS :=
BENCHES :=
SOAKS :=
SYNTHS :=
SYNTH_TABLES :=
DOCS :=

include tools/rules.mk

# Libraries before those who use them: a prerequisite is expanded where it is read.
FRAGMENTS := $(wildcard models/*/*.mk) $(wildcard kernels/*.mk kernels/*/*.mk) $(wildcard sim/*.mk) \
	$(wildcard drivers/*.mk) $(wildcard host/*.mk) $(wildcard rtl/*.mk rtl/*/*.mk) \
	$(wildcard tests/*.mk tests/*/*.mk tests/*/*/*.mk)
include $(FRAGMENTS)

# A public target first runs tools/setup, then starts make again: the fragments ask pkg-config and
# the tools for their answers while they are read, and those exist only after the set-up.
AGAIN = +@$(MAKE) --no-print-directory

.PHONY: help build demo test lint bench soak synth docs gpu-baseline clean
.PHONY: all-build all-test chosen-tests all-bench all-soak all-synth all-docs

help: ## list the targets
	@echo "Millrace: compute where the bytes already flow."
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'
	@echo "Variables: BUILD=dir (now $(BUILD))  TEST=word (only the tests whose name has it)  MR_SEED=n"

build: ## compile the libraries, the simulated units and the millrace command
	@echo "build: compiling into $(BUILD)/"
	@tools/setup build
	$(AGAIN) all-build

demo: ## text from two nodes, then a grid of digits drawn by all three units, each of them RTL
	@echo "demo: build what is missing, then run the committed models with the RTL of all three units in the loop"
	@tools/setup build
	$(AGAIN) all-build
	@BUILD="$(BUILD)" tools/demo

test: ## run every test; TEST=word runs those whose name has the word
	@echo "test: build and run the tests$(if $(TEST), whose name has '$(TEST)')"
	@tools/setup build test
	$(AGAIN) all-test

lint: ## Verilator, Yosys, clang-tidy, cppcheck, clang-format, shellcheck, stale files, links
	@echo "lint: check the sources (results are remembered in $(BUILD)/lint)"
	@tools/setup build test lint
	@BUILD="$(BUILD)" tools/lint

bench: ## measure what the documentation states
	@echo "bench: measure what the documentation states"
	@tools/setup build
	$(AGAIN) all-build
	+@MAKEFLAGS='$(filter-out -j% --jobserver%,$(MAKEFLAGS))' $(MAKE) --no-print-directory -j1 -k all-bench

soak: ## the long runs: fault injection and fuzzing at full size (hours); TEST=word chooses
	@echo "soak: fault injection and fuzzing at full size$(if $(TEST), whose name has '$(TEST)')"
	@tools/setup build test
	$(AGAIN) all-build
	+@MAKEFLAGS='$(filter-out -j% --jobserver%,$(MAKEFLAGS))' $(MAKE) --no-print-directory -j1 -k all-soak

synth: ## count multipliers, adders, flip-flops, memory bits, and a lane's LUTs and gates with Yosys
	@echo "synth: count what the RTL costs"
	@tools/setup build lint
	$(AGAIN) all-synth

docs: ## make the generated parts of the documentation again and check its links
	@echo "docs: generate and check the documentation"
	@tools/setup build
	$(AGAIN) all-docs

gpu-baseline: ## check and time every CUDA kernel on this machine's GPU (at most 8 minutes)
	@echo "gpu-baseline: check and time the CUDA kernels"
	@tools/setup build test
	$(AGAIN) all-build $(BUILD)/tests/conformance/all $(BUILD)/tests/unit/lm
	@BUILD="$(BUILD)" tools/gpu-baseline

clean: ## remove what was built
	@echo "clean: removing $(BUILD)/"
	@rm -rf "$(BUILD)"

CHOSEN = $(if $(TEST),$(foreach t,$(TESTS),$(if $(findstring $(TEST),$(t:$(BUILD)/tests/%=%)),$(t))),$(TESTS))

all-build: $(ALL)

# A test may start the command, so everything is built before one runs. What does not build must not
# hide the results of the rest: it counts as one failure more, and so does a test that is not there.
all-test:
	$(if $(strip $(CHOSEN)),,@echo "no test$(if $(TEST), has '$(TEST)' in its name)"; exit 1)
	@$(MAKE) --no-print-directory -k chosen-tests && built= || built=--build-failed; \
		BUILD="$(BUILD)" $(PYTHON) tools/run-tests $$built $(CHOSEN)

chosen-tests: $(ALL) $(CHOSEN)
	@:

all-bench: $(BENCHES)

all-soak: $(if $(TEST),$(foreach t,$(SOAKS),$(if $(findstring $(TEST),$t),$t)),$(SOAKS))

all-synth: $(SYNTH_TABLES)
	@for module in $(SYNTHS); do BUILD="$(BUILD)" tools/synth $$module || exit 1; done

all-docs: $(DOCS)
	@$(PYTHON) tools/check-links

# What the compilers and Verilator noted about the files they read.
-include $(shell find $(wildcard $(addprefix $(BUILD)/,obj tests verilated)) /dev/null \
	-path '$(BUILD)/verilated/*' -not -name rebuild.dep -o -name '*.d' -print -o -name rebuild.dep -print)
