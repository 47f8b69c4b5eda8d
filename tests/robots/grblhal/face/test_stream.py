"""A long program with character counting: no lost line, no overrun, no growing queue."""

import math
from collections import deque

import pytest
from tests.robots.grblhal.face.bench import Bench, fields

from understudy.ports import UNLIMITED
from understudy.robots.grblhal.face import OUTBOX_LIMIT, GrblHalFace

RX_SIZE = 1023


def program(count: int) -> list[bytes]:
    """Short chords of a spiral, as a sender of free forms would send them."""
    return [
        f"N{n % 1000} G1 X{10 * math.cos(n / 10):.3f} Y{10 * math.sin(n / 10):.3f} F3000\n".encode()
        for n in range(1, count + 1)
    ]


def stream(bench: Bench, lines: list[bytes]) -> list[str]:
    """Keep the receive buffer full; return the reports that were requested meanwhile."""
    waiting: deque[int] = deque()
    reports, unsent = [], deque(lines)
    while unsent or waiting:
        while unsent and sum(waiting) + len(unsent[0]) <= RX_SIZE:
            waiting.append(len(unsent[0]))
            bench.say(unsent.popleft())
        received = bench.received()
        for line in received:
            if line.startswith("<"):
                reports.append(line)
            else:
                assert line == "ok"
                waiting.popleft()
        if not received:
            at = bench.virtual_cell.timed_cell.next_wake()
            assert at is not None, "an answer is owed and no wake is due"
            bench.virtual_cell.advance_to(at)
            if len(waiting) % 7 == 0:
                bench.say(b"?")
    return reports


def run(count: int) -> tuple[Bench, list[str]]:
    bench = Bench().fast()
    lines = program(count)
    reports = stream(bench, lines)
    bench.idle()
    end = fields(bench.report())
    assert end["State"] == "Idle"
    assert end["Bf"] == "100,1023"
    x, y = (float(value) for value in end["MPos"].split(",")[:2])
    assert (x, y) == pytest.approx(
        (10 * math.cos(count / 10), 10 * math.sin(count / 10)), abs=0.003
    )
    return bench, reports


def check(reports: list[str]) -> None:
    seen = [fields(report) for report in reports]
    blocks = [int(report["Bf"].split(",")[0]) for report in seen]
    unread = [int(report["Bf"].split(",")[1]) for report in seen]
    assert min(blocks) == 0, "the planner was full"
    assert max(blocks) <= 100
    assert 0 <= min(unread) <= max(unread) <= RX_SIZE
    assert all(report["State"] == "Run" for report in seen)


def test_streaming() -> None:
    _, reports = run(2_500)
    check(reports)


@pytest.mark.soak
def test_streaming_a_long_program() -> None:
    bench, reports = run(50_000)
    check(reports)
    snapshot = bench.virtual_cell.snapshot()
    pieces = snapshot.parts["machine"]["program"]["stream"]["plan"]["path"]["length"]
    assert len(pieces) < 5_000, "finished motion is dropped"


def test_a_client_that_takes_no_answers_is_not_read_and_loses_none() -> None:
    bench = Bench()
    face = bench.virtual_cell.timed_cell.faces[bench.endpoint]
    assert isinstance(face, GrblHalFace)
    session = face.open("deaf", 0)
    session.receive(b"!", 0)
    asked = 1000
    session.receive(b"$$\n" * asked, 0)
    session.receive(b"~", 0)
    received = 0
    while True:
        assert session.outbox.size < OUTBOX_LIMIT + 4096
        while data := session.take(UNLIMITED):
            received += data == b"ok\r\n"
        if received == asked:
            break
        assert face.next_wake() == 0, "as soon as there is room"
        face.wake(0)
    assert face.next_wake() is None
