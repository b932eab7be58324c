# Everything a newcomer needs: `make run` serves, `make test` tests. Both start from Python 3.11+ and make alone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: install run test test-slow test-load test-compiled wheel e2e bench docs lint lock tools clean

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

run: install
	$(BIN)/clrk-apiserver serve

test: install
	$(BIN)/python -m pytest -m "not slow and not load"

test-slow: install
	$(BIN)/python -m pytest -m "slow and not load"

# The same modules, compiled (see setup.py): in front of the others on the path, with the checkout behind it for the tests alone.
test-compiled: install
	COMPILED=$$(tests/tools/build compiled) && \
	PYTHONSAFEPATH=1 PYTHONPATH=$$COMPILED:$(CURDIR) CLRK_TESTED=compiled $(BIN)/python -m pytest -o pythonpath= -m "not slow and not load" \
	  tests/test_compiled.py tests/apiserver tests/core tests/http2 tests/meta tests/openapi tests/storage/cache

# A wheel for this platform and Python, with these modules compiled; needs a C compiler.
wheel: install
	CLRK_COMPILE=1 $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# Behind a real kube-apiserver, with its controllers.
e2e: install
	$(BIN)/python -m pytest -m e2e

test-load: install
	$(BIN)/python -m pytest -m load -o faulthandler_timeout=1800

# Starts the Go servers beside ours and writes docs/performance.md; half an hour, on a machine that does nothing else.
bench: install
	tests/tools/build kube-apiserver sample-apiserver etcd loadgen compiled
	$(BIN)/python -m tests.bench

docs: install
	$(BIN)/python -m tests.docs.make_reference

# The real etcd, kubectl and control plane, built from their Go modules into a cache outside the checkout, and clients in Go, Python,
# JavaScript and Java. The tests build them by themselves when the toolchain is there; this target only says so early, and once.
tools:
	tests/tools/build etcd etcd-3.6 etcd-3.5.12 etcdctl kubectl-1.37 kubectl-1.32 kube-apiserver kube-controller-manager sample-apiserver loadgen helm
	tests/tools/build client-go client-python client-javascript client-java

lint: install
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases tests
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python -m pip check

lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet pip-tools
	$(VENV)-lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --extra test --extra lint --extra tracing --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header -o requirements.lock pyproject.toml .ci/build-requirements.in
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV)
