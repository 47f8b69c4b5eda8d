"""The number of threads changes no byte of a report, and no thread is left."""

import json
import threading
from collections.abc import Iterator
from random import Random

import pytest
from tests.offline.validate.cases import programs, proved
from tests.offline.validate.test_validate_oracle import cell, program

from understudy.app import validate
from understudy.app.validate import Cancelled, Options, validate_text
from understudy.errors import ConfigError
from understudy.offline.validate import clearance
from understudy.offline.validate.report import Report

THREADS = (1, 2, 3)


@pytest.fixture(autouse=True)
def short_programs_are_long(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All that long programs do in threads is done by short ones; no thread is left behind."""
    for module, name, value in (
        (validate, "LONG", 1),
        (validate, "AT_ONCE", 1),
        (clearance, "ALONE", 0),
        (clearance, "AHEAD", 3),
        (clearance, "PIECES_AT_ONCE", 1),
    ):
        monkeypatch.setattr(module, name, value)
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def shown(report: Report) -> str:
    """The bytes of the report and of its picture, without the time that it took."""
    document, course = report.document(), report.course
    del document["wall_s"], document["times_real_time"]
    picture = [course.joints, course.points, course.lines, course.times, course.tools]
    return json.dumps([document, [column.tolist() for column in picture]])


@pytest.mark.parametrize("kind", ["sound", "flawed"])
def test_shipped_programs_have_the_same_report(kind: str) -> None:
    for each in programs(kind)[::3]:
        one, *others = (shown(proved(each, Options(workers=threads))) for threads in THREADS)
        assert others == [one, one], each.name


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_with_contacts_have_the_same_report(seed: int, stops: bool) -> None:
    random = Random(seed)
    config, text = cell(random), program(random, 60)
    one, *others = (
        shown(validate_text(text, config, options=Options(workers=threads, with_stops=stops)))
        for threads in THREADS
    )
    assert others == [one, one]
    assert 'collision"' in one


def test_a_cancelled_validation_leaves_no_thread() -> None:
    random = Random(1)
    config, text = cell(random), program(random, 500)
    with pytest.raises(Cancelled):
        validate_text(text, config, options=Options(workers=3), progress=lambda done, of: False)


def test_a_number_of_threads_below_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="workers"):
        Options(workers=-1)
