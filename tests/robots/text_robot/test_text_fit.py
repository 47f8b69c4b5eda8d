"""The times of moves are estimated from a recording."""

from random import Random

import pytest
from tests.offline.fit.noisy_link import late

from understudy.app.build import build_cell
from understudy.config import CellConfig, read_config
from understudy.offline.fit.cell_file import fitted_text
from understudy.offline.fit.estimate import fit
from understudy.registry import module_of
from understudy.wire.exchange import InProcessCell

CELL = """robots:
  bench: {kind: text_robot, faces: {text_tcp: {}}}
"""


def cell(**times: int) -> CellConfig:
    keys = "".join(f", {key}: {value}" for key, value in times.items())
    return read_config(CELL.replace("text_robot,", f"text_robot{keys},"), "bench.yaml")


def test_times_of_moves_and_the_delay_of_answers() -> None:
    rng = Random(1)
    running = InProcessCell(build_cell(cell(move_abs_ms=730, move_rel_ms=310)))
    client = running.connect()
    for number in range(12):
        running.advance(1.0)
        client.ask(f"MOVE_ABS {number},0,150,0,0,0\n".encode())
        running.advance(0.2)
        client.say(b"MOVE_REL 1,0,0\nMOVE_REL -1,0,0\n")  # the second one waits for the first
        running.run_while_owed()
        running.advance(0.2)
        client.ask(b"GET_POS\n")
    chat = late(running.transcript, delay_s=0.006, jitter_s=0.0004, rng=rng)
    recorded = module_of("robots", "text_robot").recorded(cell(), "bench", chat)
    found = fit(recorded)
    by_key = {str(each.keys[-1]): each for each in found.estimates}
    assert by_key["move_abs_ms"].value == 730
    assert by_key["move_rel_ms"].value == 310
    assert by_key["delay_ms"].low <= 12.0 <= by_key["delay_ms"].high
    assert not by_key["home_ms"].visible
    text = fitted_text(CELL, found, recorded, robot="bench", recording="morning.chat")
    config = read_config(text, "fitted.yaml")
    assert config.robots["bench"].config.move_abs_ms == 730
    assert config.head.scenario.rules["answer_delay"].parameters["delay_ms"] == pytest.approx(
        12, 0.05
    )
