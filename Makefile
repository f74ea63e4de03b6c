# Each target creates the environment that it needs. Only Python 3.11 or newer and make are required.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Python compiles a module when it is first imported. Compiling all modules of all packages takes longer than installing them.
INSTALL := $(PIP) install --quiet --no-compile -c constraints.txt

# The BatchBALD of its authors, for comparison. It is installed without its dependencies, which include torchvision.
REDUX := batchbald_redux==2.0.5 toma==1.1.0 tqdm

export OMP_NUM_THREADS ?= 1
# The tests start many Python processes. Without cached bytecode, each of them compiles the package again.
export PYTHONDONTWRITEBYTECODE :=

# Tests often wait, so there are more processes than cores: one more; 4 at most.
PYTEST = $(BIN)/python -m pytest --dist worksteal -n $$($(BIN)/python -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')

# Tests that depend on the versions of other packages, except those that import torch.
LOWEST_TESTS = tests/criteria tests/tables tests/research/data tests/divergence tests/posteriors tests/report tests/test_*.py \
	$$(grep -LE '^(import|from) torch' tests/models/test_*.py tests/engines/test_*.py tests/learner/test_active.py) \
	tests/cli/test_app.py tests/cli/test_run.py tests/cli/test_label.py \
	tests/cli/test_project_commands.py tests/project/test_export.py tests/project/test_layouts.py \
	tests/project/test_project.py tests/project/test_reading*.py tests/project/test_storage*.py \
	tests/web/test_access.py tests/web/test_api.py tests/web/test_serving.py

.PHONY: demo page test coverage test-slow test-processors test-lowest test-integrations guard imports types pages lint-js setup docs dist benchmarks reproduction comparison clean

demo: $(VENV)/.demo-ready
	$(BIN)/suffice demo

# Label handwritten digits yourself, in the browser.
page: $(VENV)/.demo-ready
	$(BIN)/suffice demo --page

# Runs checks (targets) and tests (a command) in parallel. The output of the checks comes after that of the tests.
define in_parallel
	@$(MAKE) --no-print-directory -k $(1) > $(VENV)/checks.log 2>&1 & checks=$$!; \
	trap 'kill $$checks; exit 1' INT TERM; \
	echo "$(2)"; $(2); tests=$$?; \
	wait $$checks; checks=$$?; \
	cat $(VENV)/checks.log; \
	exit $$((tests > 0 || checks > 0))
endef

# The format, and beside the other checks the fast tests, with options of pytest.
define fast_checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(call in_parallel,imports types,$(PYTEST)$(1))
endef

test: $(VENV)/.dev-ready lint-js
	$(call fast_checks)

# As `make test`, with the branch coverage of the tests. Prints the files with the least; fails below 92 %.
coverage: $(VENV)/.dev-ready lint-js
	$(call fast_checks, --cov --cov-report=)
	@$(BIN)/coverage report --sort=cover --show-missing --fail-under=92 > $(VENV)/coverage.log; enough=$$?; \
		head -n 22 $(VENV)/coverage.log; tail -n 1 $(VENV)/coverage.log; exit $$enough

# The pages, and the long tests: hundreds of killed processes, large replays, long fuzzing. Property tests use more
# examples than in `make test`.
test-slow: $(VENV)/.dev-ready
	$(call in_parallel,pages,$(PYTEST) -m 'slow or hypothesis' --hypothesis-profile thorough)

# What depends on matrix products, with at least three kernels of OpenBLAS for this architecture. KERNELS="Haswell Zen"
# chooses some; KERNELS=--beside-own leaves out that of this processor, which `make test` tests.
test-processors: $(VENV)/.dev-ready
	$(BIN)/python -m tests.processors $(KERNELS)

# Fails if a public call has become slower than stored by more than a factor of 2, compared with plain references.
guard: $(VENV)/.dev-ready
	$(BIN)/python benchmarks/guard.py

imports: $(VENV)/.dev-ready
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.dev-ready
	$(BIN)/mypy

pages: $(VENV)/.dev-ready
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

# ESLint for the JavaScript of the page. Skipped with a message if npm is missing or cannot install it.
# There is no lock file, because it would record the address of a package registry.
lint-js:
	@command -v npm > /dev/null || { echo "lint-js: skipped, npm is not installed"; exit 0; }; \
	if [ ! node_modules/.ready -nt package.json ]; then \
		log=$$(npm install --no-package-lock --no-audit --no-fund --engine-strict --fetch-retries=1 2>&1) && touch node_modules/.ready || \
			{ echo "lint-js: skipped, npm could not install ESLint:"; echo "$$log" | tail -n 5; exit 0; }; \
	fi; \
	echo "node_modules/.bin/eslint --max-warnings 0 src/suffice/web/static eslint.config.js"; \
	node_modules/.bin/eslint --max-warnings 0 src/suffice/web/static eslint.config.js

# Deprecation warnings of old packages are not errors here.
test-lowest: .venv-lowest/.ready
	.venv-lowest/bin/python -m pytest -o filterwarnings=default --disable-warnings -k "not networks" $(LOWEST_TESTS)

# Tests each adapter with its framework in its own environment; NAMES="baal asreview" chooses some.
test-integrations: $(VENV)/.dev-ready
	$(BIN)/python tests/integrations/environments.py $(NAMES)

setup: $(VENV)/.dev-ready

docs: $(VENV)/.docs-ready
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# The wheels and the sdists of suffice and of suffice-research, in dist.
dist: | $(BIN)/python
	$(PIP) install --quiet build
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m build --outdir dist research
	ls -l dist

benchmarks: $(VENV)/.dev-ready
	$(BIN)/python benchmarks/bounds.py --write
	$(BIN)/python benchmarks/tightness.py --write
	$(BIN)/python benchmarks/forecast_coverage.py --write
	$(BIN)/python benchmarks/learners.py --write
	$(BIN)/python benchmarks/growth.py --write
	$(BIN)/python benchmarks/waiting.py --write
	$(BIN)/python benchmarks/variance_reduction.py --write
	$(BIN)/python benchmarks/batchbald.py --write
	$(BIN)/python benchmarks/mnist.py --write
	$(BIN)/python benchmarks/replay.py --write
	$(BIN)/python benchmarks/text_models.py --write
	$(BIN)/python benchmarks/wide_classes.py --write
	$(BIN)/python benchmarks/suspicious_labels.py --write
	$(BIN)/python benchmarks/labelling_keys.py --write
	$(BIN)/python benchmarks/labelling_load.py --write
	$(BIN)/python benchmarks/reopening.py --write

# The page "Does the paper hold up?". Takes half an hour and needs the data sets (suffice data fetch).
reproduction: $(VENV)/.dev-ready
	$(BIN)/python benchmarks/reproduction.py

# The pages about the choice of a rule. Takes half an hour and needs the data sets.
comparison: $(VENV)/.dev-ready
	$(BIN)/python benchmarks/comparison.py

clean:
	rm -rf $(VENV) .venv-lowest .integrations docs/_build node_modules

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "suffice needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-ready: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV): once, about a minute, from the package index ..."
	@$(INSTALL) -e '.[plot,web]'
	@touch $@

$(VENV)/.docs-ready: pyproject.toml research/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV) with Sphinx: once, about a minute, from the package index ..."
	@$(INSTALL) -e '.[docs]' -e ./research
	@touch $@

.venv-lowest/.ready: pyproject.toml research/pyproject.toml tests/lowest_versions.py
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python tests/lowest_versions.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet -e . -e ./research pytest hypothesis mpmath -r .venv-lowest/lowest.txt
	@touch $@

$(VENV)/.dev-ready: pyproject.toml research/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV) with PyTorch and the test tools: once, a few minutes, from the package index ..."
	@$(INSTALL) -e '.[dev,torch,embed]' -e ./research
	@$(INSTALL) --no-deps $(REDUX) || echo "without batchbald_redux: its tests skip"
	@# Compiles what the tests import, at first and later, once for all of their processes.
	@$(BIN)/python -c 'import matplotlib.pyplot, small_text, torch._dynamo' > /dev/null 2>&1 & \
		$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1; wait
	@touch $@ $(VENV)/.demo-ready $(VENV)/.docs-ready
