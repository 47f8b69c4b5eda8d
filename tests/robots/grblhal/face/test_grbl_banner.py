"""`banner: Grbl`: the firmware as compiled with COMPATIBILITY_LEVEL=1.

The answers are those of grblHAL core build 20260817, compiled so.
"""

from pathlib import Path

import pytest
from tests.robots.grblhal.face.bench import Bench

from understudy.config import read_config
from understudy.errors import ConfigError

CELL = "robots: {{machine: {{kind: machine, faces: {{grblhal: {{banner: {banner}}}}}}}}}\n"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "cell.yaml").write_text(CELL.format(banner="Grbl"))
    return Bench(str(tmp_path / "cell.yaml"))


def test_the_greeting_is_that_of_grbl(bench: Bench) -> None:
    second = bench.virtual_cell.connect(bench.endpoint)
    assert second.received() == b"\r\nGrbl 1.1f ['$' for help]\r\n"
    second.say(b"\x18")
    assert second.received() == b"\r\nGrbl 1.1f ['$' for help]\r\n"


def test_the_system_information_is_short(bench: Bench) -> None:
    assert bench.ask("$I") == ["[VER:1.1f.20260817:]", "[OPT:VNML+,100,1024]", "ok"]
    assert bench.ask("$I=shop") == ["ok"]
    assert bench.ask("$I+") == [
        "[VER:1.1f.20260817:shop]",
        "[OPT:VNML+,100,1024,6,0]",
        "[AXS:6:XYZABC]",
        "[NEWOPT:ENUMS,RT+,SED]",
        "[FIRMWARE:grblHAL]",
        "[SIGNALS:D]",
        "[NVS STORAGE:*Snapshot]",
        "[DRIVER:Understudy]",
        "[DRIVER VERSION:20260817]",
        "[COMPATIBILITY LEVEL:1]",
        "[AUX IO:8,8,4,4]",
        "ok",
    ]


def test_a_line_after_a_refused_one_is_executed(bench: Bench) -> None:
    assert bench.ask("G1 X1 U1 F100") == ["error:36"]
    assert bench.ask("G4 P0") == ["ok"]


def test_ctrl_c_is_no_reset(bench: Bench) -> None:
    bench.say(b"\x03")
    assert bench.received() == []
    assert bench.ask("G4 P0") == ["ok"]


@pytest.mark.parametrize("line", ["T1 M6", "T1M06", "m6"])
def test_there_is_no_tool_change(bench: Bench, line: str) -> None:
    assert bench.ask(line) == ["error:20"]
    assert bench.ask("T1 (M6)") == ["ok"]


def test_another_name_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(CELL.format(banner="Marlin"), "cell.yaml")
    assert "robots.machine.faces.grblhal.banner" in str(refused.value)
    assert "(got 'Marlin'); allowed: Grbl, GrblHAL" in str(refused.value)
