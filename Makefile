# Needs Python 3.11 to 3.13 with pip, make and git; all else is installed into .venv.

PYTHON ?= python3
VENV ?= .venv
# cpu: the CPU build of constraints.txt. own: leave torch to you (README says how to bring ROCm's).
TORCH ?= cpu
# Processes that run tests side by side.
JOBS ?= 2
# Options for JupyterLab: make lab LAB="--no-browser --port 9000"
LAB ?=
# What pytest runs: make test ARGS="tests/layout -k divide"
ARGS ?=

bin = $(VENV)/bin
# This file is written when the environment is complete, and is older than what it was made from when it is not.
ready = $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help lab demo test check format golden notebooks math-table peer clean

help:
	@echo "make lab        open the tour in JupyterLab"
	@echo "make demo       run the tour without a notebook, and write out/demo.html"
	@echo "make test       run everything: ruff, mypy, pytest with doctests and notebooks"
	@echo "make check      ruff and mypy alone"
	@echo "make format     sort imports and apply ruff's safe fixes"
	@echo "make golden     write the golden files anew, then look at git diff"
	@echo "make notebooks  run the notebooks and keep their outputs, then look at git diff"
	@echo "make math-table measure how accurate fx.math is, and write notebooks/reference/math_accuracy.md"
	@echo "make peer       compare compile times with the published flydsl wheel, in .venv-peer"
	@echo "make clean      remove .venv and what was built"

# Jupyter wants to be told that it may run as root, as in a container.
lab: $(ready)-lab
	$(bin)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/notebooks/00_tour.ipynb $(LAB)

demo: $(ready)-lab
	$(bin)/python -m flylab.lab.demo --out out/demo.html

test: check
	$(bin)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

check: $(ready)-test
	$(bin)/ruff check
	$(bin)/mypy

format: $(ready)-test
	$(bin)/ruff check --fix

golden: $(ready)-test
	$(bin)/python -m pytest --update-golden $(ARGS)

notebooks: $(ready)-test
	$(bin)/python .ci/notebooks.py $(ARGS)

math-table: $(ready)-test
	$(bin)/python -m tests.mathlib.table

peer: $(ready)-lab
	@$(PYTHON) .ci/prepare.py peer --venv .venv-peer
	$(bin)/python tests/benchmarks/bench_cold_compile.py --peer-python .venv-peer/bin/python

clean:
	rm -rf $(VENV) .venv-peer build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(ready)-%: pyproject.toml constraints.txt .ci/prepare.py
	@command -v $(PYTHON) >/dev/null || { echo "flylab: no $(PYTHON) on PATH: name a Python 3.11 to 3.13 with make PYTHON=..."; exit 1; }
	@TORCH_INDEX="$(TORCH_INDEX)" $(PYTHON) .ci/prepare.py $* --venv $(VENV) --torch $(TORCH)
	@touch $@
