"""Values that keep browsers up to date: checksum of the program, overrides, advice."""

import pytest
from msgspec import to_builtins
from tests.benches import Bench

from understudy.devices.welder import ADVICE
from understudy.operator.events import ADVICE_BY_CODE, CONTACT_ADVICE, OTHER_ADVICE, advice_on
from understudy.ports.refusals import HARD_LIMIT

TRIPPED = 17


def checksum(bench: Bench) -> int:
    return int(bench.do("status")["parts"]["g60.program"].checksum)


def test_the_checksum_depends_on_the_program_text_only(bench: Bench) -> None:
    assert checksum(bench) == 0
    bench.do("load_program", robot="g60", text="G0 A1\n", name="one")
    one = checksum(bench)
    bench.do("load_program", robot="g60", text="G0 A2\n", name="one")
    assert checksum(bench) not in (0, one)
    bench.do("load_program", robot="g60", text="G0 A1\n", name="two")
    assert checksum(bench) == one
    bench.do("enable", robot="g60")
    bench.do("run_program", robot="g60")
    bench.forward(1.0)
    assert checksum(bench) == one


def test_a_snapshot_restores_the_program_text(bench: Bench) -> None:
    bench.do("load_program", robot="g60", text="G0 A1\n")
    before, snapshot = checksum(bench), to_builtins(bench.do("snapshot")["snapshot"])
    bench.do("load_program", robot="g60", text="G0 A2\n")
    bench.do("restore", snapshot=snapshot)
    assert checksum(bench) == before


def test_the_query_robots_has_the_overrides(arm: Bench) -> None:
    assert arm.facts("g60")["overrides_percent"] == {"feed": 100.0, "rapid": 100.0}
    arm.do("override", robot="g60", feed_percent=50, rapid_percent=25)
    arm.forward(0.1)
    assert arm.facts("g60")["overrides_percent"] == {"feed": 50.0, "rapid": 25.0}


@pytest.mark.parametrize(
    ("code", "text", "advice"),
    [
        (TRIPPED, "axis 3 tripped", ADVICE_BY_CODE[TRIPPED]),
        (TRIPPED, "line 11: weld fault: the arc was lost", ADVICE["arc"]),
        (TRIPPED, "line 9: weld fault: no gas", ADVICE["gas"]),
        (HARD_LIMIT, "block_28 collides with block_24 at (619, -200, 99) mm", CONTACT_ADVICE),
        (0, "something else", OTHER_ADVICE),
    ],
)
def test_the_advice_on_a_weld_fault_comes_from_the_welder(
    arm: Bench, code: int, text: str, advice: str
) -> None:
    devices = next(iter(arm.live.operator.robots)).devices
    assert advice_on(code, text, devices.values()) == advice
