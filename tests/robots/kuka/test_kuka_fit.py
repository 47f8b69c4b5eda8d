"""Periods, delays and speeds of a KUKA are estimated from its commands and its telemetry."""

from functools import cache
from random import Random

import pytest
from tests.offline.fit.noisy_link import late

from understudy.app.build import build_cell
from understudy.app.validate import cycle_time
from understudy.config import CellConfig, read_config
from understudy.offline.fit.cell_file import fitted_text
from understudy.offline.fit.estimate import Estimate, fit
from understudy.registry import module_of
from understudy.robots.kuka.fit import limited_lines
from understudy.robots.kuka.frames import write_command
from understudy.robots.kuka.records import Record
from understudy.units import MM
from understudy.wire.chat import Chat
from understudy.wire.exchange import InProcessCell

CELL = """robots:
  kuka:
    kind: kuka
    home_speed_percent: {home}
    speed_limit_mm_s: {limit}
    collision: {{enable: false}}
    faces: {{kuka_eki: {{feedback_ms: {feedback}, telemetry: {{}}}}}}
"""
KNOWN = CELL.format(home=10, limit=100, feedback=50)
LINE, HOME, TOOL = 0, 28, 1
FEEDS = (40, 80, 300, 400, 500, 600)


def cell(text: str) -> CellConfig:
    return read_config(text, "kuka.yaml")


def recording(text: str, delay_s: float, rng: Random) -> Chat:
    running = InProcessCell(build_cell(cell(text)))
    running.connect("kuka.kuka_eki.telemetry")
    client = running.connect("kuka.kuka_eki.command")
    seq = 0

    def say(kind: int, seconds: float, **words: float) -> None:
        nonlocal seq
        seq += 1
        client.say(write_command(Record(seq, kind, {w: v * MM for w, v in words.items()})))
        running.advance(seconds)

    for number, feed in enumerate(FEEDS):
        say(LINE, 60.0 / min(feed, 100) + 1.0, X=60.0 * (number % 2), Y=0.0, Z=50.0, F=feed)
        for _ in range(3):
            say(TOOL, rng.uniform(0.1, 0.2))
    for _ in range(5):
        say(HOME, 6.0)
        say(LINE, 5.0, X=0.0, Y=0.0, Z=50.0, F=100)
    return late(running.transcript, delay_s=delay_s, jitter_s=0.0003, rng=rng)


def estimates(chat: Chat) -> dict[str, Estimate]:
    found = fit(module_of("robots", "kuka").recorded(cell(KNOWN), "kuka", chat))
    return {each.meaning: each for each in found.estimates}


@cache
def hidden(seed: int) -> tuple[dict[str, float], Chat]:
    """Hidden figures by their meaning, and the recording of a robot that has them."""
    rng = Random(seed)
    home, limit = round(rng.uniform(8, 20), 2), round(rng.uniform(110, 180), 1)
    feedback, delay = rng.randint(30, 90), rng.uniform(0.003, 0.01)
    truth = {
        "speed of home": home,
        "limit of the speed": limit,
        "period of feedback": feedback,
        "period of telemetry": 20.0,
        "delay of answers": 2e3 * delay,
    }
    return truth, recording(CELL.format(home=home, limit=limit, feedback=feedback), delay, rng)


def trial(seed: int) -> list[str]:
    """What is wrong with the estimates of a hidden robot."""
    truth, chat = hidden(seed)
    found = estimates(chat)
    wrong = []
    for name, value in truth.items():
        each = found[name]
        if not each.visible or not each.low <= value <= each.high:
            wrong.append(f"{name}: {value} is outside {each.low}…{each.high}")
    return wrong


@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_the_intervals_contain_hidden_figures(count: int) -> None:
    failed = {seed: wrong for seed in range(count) if (wrong := trial(seed))}
    assert len(failed) <= count // 20, failed


def test_the_time_of_a_fitted_robot_has_an_interval() -> None:
    """Whole figures, as the period of feedback, stay whole at the ends of their intervals."""
    truth, chat = hidden(0)
    recorded = module_of("robots", "kuka").recorded(cell(KNOWN), "kuka", chat)
    text = fitted_text(KNOWN, fit(recorded), recorded, robot="kuka", recording="a.chat")
    interval = cycle_time("G1 X50 Y0 Z50 F170\nG28\n", cell(text)).interval_s
    real = CELL.format(
        home=truth["speed of home"],
        limit=truth["limit of the speed"],
        feedback=truth["period of feedback"],
    )
    assert interval is not None
    low, high = interval
    assert low <= cycle_time("G1 X50 Y0 Z50 F170\nG28\n", cell(real)).total_s <= high


def test_the_telemetry_alone_shows_its_period() -> None:
    _, chat = hidden(0)
    alone = [event for event in chat.events if event.endpoint.endswith("telemetry")]
    recorded = module_of("robots", "kuka").recorded(
        cell(KNOWN), "kuka", Chat(chat.facts, tuple(alone))
    )
    found = fit(recorded)
    assert [each.meaning for each in found.visible] == ["period of telemetry"]
    assert "no commands" in found.notes[0]


def test_lines_at_one_share_of_their_speed_show_an_override() -> None:
    limits, overrides = limited_lines([(40.0, 20.0), (80.0, 40.0), (90.0, 45.01)])
    assert (limits, [round(share) for share in overrides]) == ([], [50, 50, 50])


def test_one_slow_line_shows_neither_a_limit_nor_an_override() -> None:
    assert limited_lines([(300.0, 100.0)]) == ([], [])
