# Two commands for a fresh machine: `make demo` and `make test`. Both make the virtual environment that they need.
VENV ?= .venv
BIN = $(VENV)/bin
export HF_HUB_OFFLINE ?= 1

.PHONY: demo test lint docs clean

$(VENV)/.ready: pyproject.toml constraints.txt requirements-offline.txt
	python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs,documents,gguf,lint,test,train]'
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements-offline.txt
	touch $@

demo: $(VENV)/.ready
	$(BIN)/qgrag index qgrag/demo/notes --out runs/demo-index
	$(BIN)/qgrag retrieve runs/demo-index --retriever dual --top-k 3 "Who founded the conservatory that Sergei Prokofiev went to?"
	@echo "An answer by SmolLM2, a language model of 135 million parameters: small and weak, but it needs no service."
	$(BIN)/qgrag ask runs/demo-index --llm configs/llm/smollm2.yaml --top-k 2 --evidence-tokens 600 "In which city was Anton Karas born?"
	$(BIN)/qgrag eval --dataset demo --index runs/demo-index --out runs/demo

test: $(VENV)/.ready
	$(BIN)/python -m pytest

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.ready
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site
	@echo "written to site/index.html"

clean:
	rm -rf $(VENV) runs build dist site
