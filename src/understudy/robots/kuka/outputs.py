"""Welding outputs of the KUKA: arc, gas and the number of the job."""

from msgspec import Struct

ARC, GAS, FIRST_JOB_BIT, JOB_BITS = 1, 9, 65, 16
"""Numbers of the welding outputs: arc $OUT[1], gas $OUT[9], the job on $OUT[65..80], LSB first."""


class SavedOutputs(Struct):
    """Snapshot of the outputs. `gas_until`: end of the post-flow, if the gas flows after an arc."""

    job: int = 0
    gas: bool = False
    gas_until: int | None = None


class WeldingOutputs:
    """Arc, gas and job outputs: the arc burns while there is a job, the gas flows until the end of
    the post-flow."""

    def __init__(self, post_flow: int) -> None:
        self._post_flow = post_flow
        self._now = SavedOutputs()

    @property
    def job(self) -> int:
        return self._now.job

    def weld(self, job: int, now: int) -> None:
        """Job 0 turns the arc off; another job number turns it on, or changes the job."""
        if job == self._now.job:
            return
        self._now = SavedOutputs(job, gas=True, gas_until=None if job else now + self._post_flow)
        self.wake(now)

    def next_wake(self) -> int | None:
        return self._now.gas_until

    def wake(self, now: int) -> None:
        if self._now.gas_until is not None and self._now.gas_until <= now:
            self._now = SavedOutputs(self._now.job)

    def high(self) -> tuple[int, ...]:
        """Numbers of the outputs that are on."""
        job = self._now.job
        bits = (FIRST_JOB_BIT + bit for bit in range(JOB_BITS) if job >> bit & 1)
        return (*((ARC,) if job else ()), *((GAS,) if self._now.gas else ()), *bits)

    def switch_off(self) -> None:
        """Switches all outputs off at once, without post-flow."""
        self._now = SavedOutputs()

    def save(self) -> SavedOutputs:
        return self._now

    def load(self, state: SavedOutputs) -> None:
        self._now = state
