# Every target sets up what it needs: a fresh clone, Python 3.11 and make do.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: venv demo test test-all coverage lint format bench docs clean

venv: $(STAMP)

$(STAMP): setup.cfg constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: venv
	$(BIN)/swe demo --output_dir=runs/demo

# Most of a test is Python tracing graphs on one core: two at a time.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

test: venv
	$(PYTEST) -m 'not slow' $(ARGS)

test-all: venv
	$(PYTEST) $(ARGS)

# Lines and branches that the tests run, those of their subprocesses too.
coverage: venv
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m pytest -n 2 --dist loadfile $(ARGS); \
	  status=$$?; $(BIN)/coverage combine --quiet && \
	  $(BIN)/coverage report && exit $$status

CODE := swe_tf tests benchmarks experiments

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

docs: venv
	$(BIN)/pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python docs/build_api.py build/docs

clean:
	rm -rf $(VENV) build *.egg-info
