"""`understudy run --shards`: the shards of a fleet, started by one command.

The first shard is the cell of the command itself, with the page, the doors and the NATS server of
its own. Each other one is a process of this module. It reads a `ShardSpec` from its standard input,
prints its addresses as a JSON line, and ends when its input ends: whatever ends the first shard
ends them all. If one of them ends, so does the run.
"""

import asyncio
import contextlib
import json
import logging
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread

import msgspec
from msgspec import Struct

from understudy.agenda import Rate
from understudy.app.live import Live, Options, run_of
from understudy.config import load_config
from understudy.config.cell import CellConfig, is_group
from understudy.config.limits import MOST_ROWS
from understudy.config.shards import MOST_SHARDS, Shard, with_robots, with_shard
from understudy.errors import ConfigError
from understudy.wire.child_process import Process, ends_with_this_process, how_it_ended
from understudy.wire.task_shutdown import end_tasks

log = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", __name__)
AUTO = "auto"
ROBOTS_OF_SHARD = 1000
"""With `auto` each shard has this number of robots or more."""
STOP_SECONDS = 1.5
"""A shard that has not ended by then is killed."""
LONGEST_LINE = 1 << 20


class ShardSpec(Struct, frozen=True):
    """What a process of a shard does. `endpoints`, `secret`: of the first shard."""

    cell: str
    seed: int | None
    robots: int | None
    shard: Shard
    rate: Rate
    endpoints: Mapping[str, str]
    secret: str
    real: bool
    files: str

    def config(self) -> CellConfig:
        config = load_config(self.cell, seed=self.seed)
        if self.robots is not None:
            config = with_robots(config, self.robots, self.shard.of)
        return with_shard(config, self.shard, self.endpoints)


def number_of_shards(text: str, config: CellConfig, robots: int | None) -> int:
    """`auto`: a shard for each processor, as far as there are robots for it; more if their tables
    would be too large."""
    own = sum(is_group(robot.kind) for robot in config.robots.values())
    count = own if robots is None else robots
    if text == AUTO:
        needed = math.ceil(count / MOST_ROWS)
        return max(min(_processors(), count // ROBOTS_OF_SHARD), needed, 1)
    most = min(max(count, 1), MOST_SHARDS)
    if re.fullmatch("[0-9]{1,5}", text) is None or not 1 <= int(text) <= most:
        allowed = f"{AUTO}, or a number to {most}: every shard has a mobile robot"
        raise ConfigError("--shards", value=text, allowed=allowed)
    return int(text)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ShardProcesses:
    """`ChildProcesses`: the shards from the second one on. ``spec``: of the first one; ``is_up``:
    called with endpoint, words and address."""

    def __init__(
        self,
        spec: ShardSpec,
        live: Live,
        is_up: Callable[[str, str, str], None],
    ) -> None:
        self.problem = ""
        """What ended the run; empty: nothing."""
        self._spec = spec
        self._live = live
        self._is_up = is_up
        self._processes: list[Process] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting = set(self.endpoints())
        self._settled = asyncio.Event()
        """All are up, or one has ended."""

    def endpoints(self) -> Sequence[str]:
        return [f"shard-{number}" for number in range(2, self._spec.shard.of + 1)]

    def start(self) -> None:
        of = self._spec.shard.of
        for number in range(2, of + 1):
            spec = msgspec.structs.replace(
                self._spec,
                shard=Shard(number, of),
                endpoints=dict(self._live.endpoints),
                secret=self._live.secret,
            )
            self._tasks.append(asyncio.create_task(self._run(spec)))

    async def wait(self) -> None:
        await self._settled.wait()

    def check(self) -> None:
        if self.problem:
            raise ConfigError(self.problem)

    async def stop(self) -> None:
        await end_tasks(*self._tasks)
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        await asyncio.gather(*map(_ended, self._processes))

    async def _run(self, spec: ShardSpec) -> None:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C in a terminal is for the first shard only
            preexec_fn=ends_with_this_process(),
        )
        self._processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(spec) + b"\n")
        name = f"shard-{spec.shard.number}"
        while line := await process.stdout.readline():
            if name in self._waiting:
                self._waiting.remove(name)
                address = json.loads(line)["endpoints"].get("control", "")
                self._is_up(name, f"Shard {spec.shard.number} of {spec.shard.of}", address)
            if not self._waiting:
                self._settled.set()
        how = how_it_ended(await process.wait())
        self.problem = f"shard {spec.shard.number} of {spec.shard.of} has ended ({how})"
        self._settled.set()
        if not self._waiting:
            log.error("%s; the other shards end, too", self.problem)
        self._live.finished.set()


async def _ended(process: Process) -> None:
    """Returns when a process has ended, by force after a timeout."""
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


# ── the process of a shard ──────────────────────────────────────────────────────────────────────


def main() -> None:
    from understudy.cli.run import log_to_stderr, run_shard

    spec = msgspec.json.decode(sys.stdin.buffer.readline(), type=ShardSpec)
    log_to_stderr()
    Thread(target=_end_with_input, daemon=True).start()
    lines = sys.stdout
    try:
        config = spec.config()
        options = Options(
            rate=spec.rate,
            run=run_of(config, spec.rate),
            ephemeral=True,
            secret=spec.secret,
            real=spec.real,
            files=Path(spec.files),
        )
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            run_shard(config, options, lines)
    except ConfigError as problem:
        log.error("shard %d of %d: %s", *spec.shard, problem)
        sys.exit(2)


def _end_with_input() -> None:
    """Ends this process, as Ctrl-C does, when nothing more can come from the first shard. A reader
    of `sys.stdin` would hold its lock, without which Python cannot end before."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
