"""Commands load what they need, and nothing before they run."""

import subprocess
import sys

import pytest

from understudy.cli import load
from understudy.registry import cli_rows

HEAVY = ("numba", "numpy", "ruckig", "nicegui", "zmq", "yaml", "understudy.space", "understudy.app")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_load_nothing_heavy(option: str) -> None:
    code = (
        "import sys\n"
        "from understudy.cli import app\n"
        "try:\n"
        f"    app([{option!r}])\n"
        "except SystemExit:\n"
        "    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_cell_loads_no_libraries_that_it_does_not_use() -> None:
    """numba and nats-py import both of them without need, also in a cell with kernels and NATS."""
    code = (
        "import sys\n"
        "import understudy.space.compiled, understudy.app.kernels\n"
        "from understudy.wire.nats import load_library\n"
        "load_library()\n"
        "from numba import njit\n"
        "import numpy, nats.aio.transport\n"
        "print([name for name in ('scipy.linalg', 'aiohttp.client') if name in sys.modules])\n"
        "dot = njit(lambda a, b: numpy.dot(a, b))\n"
        "print(dot(numpy.ones(3), numpy.ones(3)))\n"
        "print(nats.aio.transport.aiohttp.WSMsgType.BINARY.name, 'aiohttp.client' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "3.0", "BINARY True"], "both work when they are used"


def test_a_text_robot_answers_without_the_compiler() -> None:
    """Its cell has a rule, whose fault is looked for in what is loaded first."""
    code = (
        "import sys\n"
        "from understudy.cli import app\n"
        "try:\n"
        "    app(['run', 'text_robot', '--no-hmi', '--ephemeral', '--for', '0.05'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print([name for name in ('numba', 'llvmlite', 'ruckig') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "listens on" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", cli_rows())
def test_every_row_of_the_table_leads_to_a_command_with_help(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert command.help, "the function of a command has a docstring"
    assert command.epilog == f"Example: understudy {cli_rows()[name].example}"
    assert cli_rows()[name].example.split()[0] == name
