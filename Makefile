# Every target sets up what it needs: a fresh clone, Python 3.11 to 3.13, make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: venv demo test test-all lint format bench docs clean
.PHONY: screenshots
.PHONY: examples extras
.PHONY: rehearsal

venv: $(STAMP)

$(STAMP): setup.cfg constraints.txt
	@echo "installing the versions of constraints.txt (about 2 minutes)"
	@start=$$(date +%s); { while sleep 4; do printf .; done; } & dots=$$!; \
	trap "kill $$dots" EXIT; \
	{ test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); } && \
	$(BIN)/pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[dev]' && \
	echo "installed in $$(($$(date +%s) - start)) s"
	@touch $(STAMP)

demo: venv
	@$(BIN)/swe demo --output_dir=runs/demo

# Two curves each, with and without sharing; see docs/examples.md.
EXAMPLES := mlp vit gpt multitask model_garden_vit

examples: venv
	for name in $(EXAMPLES); do \
	  $(BIN)/python examples/$$name.py --output_dir=runs/examples || exit 1; \
	done

# Most of a test is Python tracing graphs on one core: two at a time, in the
# order of tests/conftest.py.
PYTEST := -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test: venv
	$(BIN)/python $(PYTEST) -m 'not slow' $(ARGS)

# The reference implementation that exports are compared with, and the TPU
# compiler.
EXTRAS := $(VENV)/.extras

extras: $(EXTRAS)

$(EXTRAS): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt \
	  --editable '.[dev,keras3,mlflow,parity,ray,tpu-check,wandb]'
	touch $(EXTRAS)

test-all: extras
	$(BIN)/python $(PYTEST) $(ARGS)

CODE := swe_tf tests benchmarks experiments examples

lint: venv
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/codespell $(CODE) gin docs *.md

format: venv
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: venv
	$(BIN)/python -m benchmarks.step_time --layers=6 --cosine
	$(BIN)/python -m benchmarks.tokenization

rehearsal: venv
	$(BIN)/python -m benchmarks.rehearsal

docs: venv
	$(BIN)/pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo built build/docs/index.html

# Needs Chromium (Debian: apt-get install chromium); a report in runs/report and
# the demo's page, if they were made.
PAGES := $(addprefix report=,$(wildcard runs/report/report.html)) \
  site=build/docs/index.html api=build/docs/api/swe_tf.sharing.plan.html $(addprefix demo=,$(wildcard runs/demo/index.html))

screenshots: docs
	$(BIN)/python -m benchmarks.screenshots --output_dir=docs/images $(PAGES)

clean:
	rm -rf $(VENV) build *.egg-info
