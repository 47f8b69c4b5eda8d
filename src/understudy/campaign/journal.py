"""The journal of a campaign: one line for each finished run, so that it can be resumed.

The first line says which campaign it is. Lines are written whole; one that was cut off by a power
failure or a killed process is dropped when the journal is opened again.
"""

import os
from hashlib import sha256
from pathlib import Path
from types import TracebackType

import msgspec
from msgspec import Struct

from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import PlanFile, RunSpec
from understudy.errors import UNREADABLE, ConfigError

FORMAT = 1


class Heading(Struct, frozen=True):
    """The first line. `digest`: see `campaign_digest`."""

    format: int
    digest: str


def campaign_digest(planned: PlanFile) -> str:
    """The same for the same runs: plan, cell file, programs and rules."""
    plan = planned.plan
    first = planned.config(RunSpec(0, plan.seed, plan.points()[0]))
    parts = (plan, planned.cell_text()[1], planned.programs(first), planned.rules())
    plain = msgspec.to_builtins(parts, str_keys=True)
    return sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()[:16]


class Journal:
    """Outcomes on disk; ``outcomes`` has those that were there already."""

    def __init__(self, path: Path, planned: PlanFile) -> None:
        self._path = path
        self._heading = Heading(FORMAT, campaign_digest(planned))
        self.outcomes: dict[int, Outcome] = {}
        kept = self._read() if path.exists() else 0
        self._file = open(path, "ab")  # noqa: SIM115 - closed in __exit__
        os.truncate(path, kept)
        if not kept:
            self._write(self._heading)

    def add(self, outcome: Outcome) -> None:
        if outcome.number not in self.outcomes:
            self.outcomes[outcome.number] = outcome
            self._write(outcome)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def _write(self, line: Struct) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def _read(self) -> int:
        """Reads the outcomes; returns how many bytes are whole lines."""
        data = self._path.read_bytes()
        kept = 0
        for number, line in enumerate(data.splitlines(keepends=True)):
            if not line.endswith(b"\n"):
                break
            try:
                if number == 0:
                    self._check(msgspec.json.decode(line, type=Heading))
                else:
                    outcome = msgspec.json.decode(line, type=Outcome)
                    self.outcomes[outcome.number] = outcome
            except UNREADABLE:
                if number == 0:
                    raise ConfigError(
                        "not the journal of a campaign", file=str(self._path)
                    ) from None
                break
            kept += len(line)
        return kept

    def _check(self, heading: Heading) -> None:
        if heading != self._heading:
            raise ConfigError(
                "the journal is of another campaign: its file, the cell, a program, a rule, --runs "
                "or --seed has changed",
                file=str(self._path),
                allowed="--fresh to begin again, or another --out folder",
            )
