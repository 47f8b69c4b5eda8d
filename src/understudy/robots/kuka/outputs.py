"""The welding outputs: arc $OUT[1], gas $OUT[9], the job's number on $OUT[65..80], LSB first."""

import msgspec
from msgspec import Struct

from understudy.ports import State

ARC, GAS, FIRST_JOB_BIT, JOB_BITS = 1, 9, 65, 16


class Saved(Struct):
    """What a snapshot holds of the outputs. `gas_until`: when the post-flow ends, if it flows."""

    job: int = 0
    gas: bool = False
    gas_until: int | None = None


class Outputs:
    """The arc burns while there is a job; the gas flows with it, and for a while after it."""

    def __init__(self, post_flow: int) -> None:
        self._post_flow = post_flow
        self._now = Saved()

    @property
    def welding(self) -> bool:
        return self._now.job != 0

    @property
    def job(self) -> int:
        return self._now.job

    def weld(self, job: int, now: int) -> None:
        """0: arc off; from 0: arc on; from one to another: the job is switched under the arc."""
        if job == self._now.job:
            return
        self._now = Saved(job, gas=True, gas_until=None if job else now + self._post_flow)
        self.wake(now)

    def next_wake(self) -> int | None:
        return self._now.gas_until

    def wake(self, now: int) -> None:
        if self._now.gas_until is not None and self._now.gas_until <= now:
            self._now = Saved(self._now.job)

    def high(self) -> tuple[int, ...]:
        """The numbers of the outputs that are on."""
        job = self._now.job
        bits = (FIRST_JOB_BIT + bit for bit in range(JOB_BITS) if job >> bit & 1)
        return (*((ARC,) if job else ()), *((GAS,) if self._now.gas else ()), *bits)

    def save(self) -> Saved:
        return self._now

    def load(self, state: State) -> None:
        self._now = msgspec.convert(state, Saved)
