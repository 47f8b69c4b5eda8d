"""How hypothesis looks for examples.

`house`: the same examples in every run, so that a verdict on the code does not depend on chance.
`search` (`make soak`): others each time. No example has a deadline: any may have to wait for the
compiler or for a busy machine.

Results that a cell keeps on disk go to a folder of this run, never to the user's own.

A kind that a test registers is gone after that test, so that the order of tests does not matter.

The commands that tests start end at SIGHUP, also if the tests themselves run under `nohup`.

Compiled modules are kept, also if the environment forbids it: each of the hundreds of processes
that tests start would compile all modules anew.

The garbage collector leaves out what exists when all tests are collected: half a million objects.

With several workers a file of tests runs on one of them, in its order (`--dist loadfile`).
"""

import gc
import os
import signal
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from understudy import registry
from understudy.wire import zmq_request

pytest_plugins = ("tests.benches", "tests.browsers")

settings.register_profile(
    "house",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "search", settings.get_profile("house"), derandomize=False, max_examples=200
)
settings.load_profile("house")

signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["UNDERSTUDY_CACHE_DIR"] = tempfile.mkdtemp(prefix="understudy-tests-")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def registered_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {table: {} for table in registry.TABLES})


@pytest.fixture
def patient_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of a client of ZeroMQ may take long on a busy machine."""
    monkeypatch.setattr(zmq_request, "CONNECT_SECONDS", 60.0)
