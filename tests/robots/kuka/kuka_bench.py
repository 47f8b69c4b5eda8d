"""The robot behind the wire, alone on virtual time."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np

from understudy.agenda import ClockState, advance
from understudy.config.files import read_model
from understudy.ports import Deps
from understudy.robots.kuka import Config, build
from understudy.robots.kuka.records import KukaReading, Record
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.simulation.scenario import Config as NoScenario
from understudy.simulation.scenario import build as scenario
from understudy.units import DEG, MM, nanoseconds, seconds

UNITS = dict.fromkeys("XYZF", MM) | dict.fromkeys("ABC", DEG) | {"E": 1.0}


@cache
def model(name: str) -> bytes:
    return read_model(name, beside="")


class Robot:
    """The robot in mm, deg, mm/s and seconds."""

    def __init__(self, **settings: Any) -> None:
        self.said: list[str] = []
        self.done: list[tuple[float, int]] = []
        deps = Deps(scenario(NoScenario(), 1), model, ClockState(), log=self.said.append)
        self.server: KukaGcodeServer = build("kuka", Config(**settings), deps)
        self.server.on_executed(self._executed)
        self.now = 0
        self.seq = 0
        self.server.connect(0, True, 0)

    def _executed(self, now: int) -> None:
        self.done.append((seconds(now), self.server.progress().completed))

    def say(self, kind: int = 0, **words: float) -> int:
        self.seq += 1
        given = {word: value * UNITS[word] for word, value in words.items()}
        self.server.submit(Record(self.seq, kind, given), self.now)
        return self.seq

    def go(self, kind: int = 0, **words: float) -> float:
        """Submit a record and wait for its completion; return the seconds."""
        begun = self.now
        self.say(kind, **words)
        self.finish()
        return seconds(self.now - begun)

    def finish(self) -> None:
        while self.server.busy() and (at := self.server.next_wake()) is not None:
            self.advance_to(at)

    def advance(self, duration: float) -> None:
        self.advance_to(self.now + nanoseconds(duration))

    def advance_to(self, moment: int) -> None:
        advance([self.server], moment)
        self.now = moment

    def reading(self) -> KukaReading:
        return self.server.reading(self.now)

    @property
    def place(self) -> list[float]:
        """X Y Z A B C."""
        x, y, z, c, b, a = self.reading().pose
        return [round(v, 6) + 0.0 for v in (x / MM, y / MM, z / MM, a / DEG, b / DEG, c / DEG)]

    @property
    def axes(self) -> list[float]:
        return [round(angle / DEG, 3) + 0.0 for angle in self.reading().axes]

    def outputs(self) -> tuple[int, ...]:
        return self.server.status(self.now).outputs

    @property
    def messages(self) -> tuple[str, ...]:
        return self.server.status(self.now).messages

    def samples(self, times: Sequence[float]) -> list[KukaReading]:
        """Readings at times of the running segment."""
        return [self.server.reading(nanoseconds(t)) for t in times]

    def saved(self) -> Any:
        """A snapshot after JSON."""
        return msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(self.server.save())))


def tips(readings: Sequence[KukaReading]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([reading.pose[:3] for reading in readings]) / MM
