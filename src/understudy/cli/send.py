"""`understudy send`: stream a program to a robot, virtual or real."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from understudy.cell.cell import Cell
from understudy.config.files import read_text
from understudy.drivers import kuka_eki
from understudy.drivers.kuka_eki_program import Step, read_program
from understudy.errors import ConfigError, Refused, unknown
from understudy.gcode.words import Problem
from understudy.ready import running_cells
from understudy.wire.clock import Clock
from understudy.wire.dial import Destination, Dial
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump
from understudy.wire.record import parse_address

LOOK_SECONDS = 0.05


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: understudy send kuka part.gcode --to 192.168.0.10:54601")(send)


def send(
    robot: Annotated[str, typer.Argument(help="of a cell that runs; with --to: kuka")],
    file: Annotated[Path, typer.Argument(help="the program")],
    to: Annotated[str | None, typer.Option(help="HOST:PORT, also of a REAL robot")] = None,
) -> None:
    """Stream a program to a robot, and see it through."""
    sender, destination = _find(robot, to)
    outcome = asyncio.run(sender(read_text(file), destination))
    if outcome is not None:
        print(f"{file}: {outcome.reason}", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{file}: done")


# ── whom, and how ──

Sender = Callable[[str, Destination], Coroutine[Any, Any, Refused | None]]


def _find(robot: str, to: str | None) -> tuple[Sender, Destination]:
    """By dialect where an address is given, else by the endpoints of the cells that run."""
    if to is not None:
        if robot not in SENDERS:
            raise unknown("robot to send to", robot, SENDERS)
        return SENDERS[robot][1], _destination(to)
    there = {name: address for cell in running_cells() for name, address in cell.endpoints.items()}
    for ending, sender in SENDERS.values():
        if f"{robot}.{ending}" in there:
            return sender, _destination(there[f"{robot}.{ending}"])
    endings = tuple(ending for ending, _ in SENDERS.values())
    able = [name.split(".")[0] for name in there if name.endswith(endings)]
    raise unknown("robot (no running cell has it; --to HOST:PORT names another)", robot, able)


def _destination(address: str) -> Destination:
    place = parse_address(address)
    if place.port == 0:
        raise ConfigError("not an address", value=address, allowed="HOST:PORT")
    return Destination(place.host, place.port)


# ── KUKA ──


async def send_kuka(program: str, destination: Destination) -> Refused | None:
    steps = read_program(program)
    if isinstance(steps, Problem):
        return steps.refused()
    if not steps:
        return None
    driver = kuka_eki.build(kuka_eki.Config())
    cell = Cell("send", digest="", parts={"robot": driver}, faces={})
    pump = Pump(Exchange(cell), Clock(), poll_step=1)
    dial = Dial(driver, destination, pump)
    pump.start()
    dial.start()
    try:
        return await _see_through(driver, steps, pump)
    finally:
        await dial.stop()
        pump.stop()


async def _see_through(
    driver: kuka_eki.KukaEkiDriver, steps: list[Step], pump: Pump
) -> Refused | None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Refused | None] = loop.create_future()
    driver.on_finished(lambda ticket, outcome, now: ended.set_result(outcome))
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, lambda: pump.act(driver.give_up))
    while isinstance(started := pump.act(lambda now: driver.run(steps, now)), Refused):
        if started != kuka_eki.NOT_CALLED:
            return started
        await asyncio.sleep(LOOK_SECONDS)
    with _bar() as progress:
        task = progress.add_task("records", total=len(steps))
        while not ended.done():
            if (job := driver.progress()) is not None:
                progress.update(task, completed=job.completed)
            await asyncio.wait([ended], timeout=LOOK_SECONDS)
        if ended.result() is None:
            progress.update(task, completed=len(steps))
    return ended.result()


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))


SENDERS: dict[str, tuple[str, Sender]] = {"kuka": ("kuka_eki.command", send_kuka)}
"""Name of the dialect → what its endpoints are called, and how to send."""
