"""Add a whole capability from outside the package: a gripper, a job, commands, a page, a command
line and a section of the cell file, in one package with entry points.

`install` writes the package `inspection` and its entry points to a folder, as pip does. Then the
shipped pick & place job works with its magnet, and its own job visits the points of a part.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MAGNET = '''
"""A magnet at the tool: a gripper for pick & place. It takes what is near within 0.1 s."""
from typing import Any
from msgspec import Struct
from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.ports.device import Mount
from understudy.ports.hand import HandStatus

USES_WORKPIECES = True
FAULTS: dict[str, Any] = {}

class Config(Struct, frozen=True, forbid_unknown_fields=True):
    reach_mm: float = 60.0

class State(Struct):
    ticket: int = 0
    due: int | None = None
    closing: bool = False

class Magnet:
    """`Hand` and `Device`."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self.state = State()
        self._reach, self._mount = (config.reach_mm / 1000,) * 3, mount
        self._listeners: list[Finished] = []

    def _held(self) -> str:
        parts = self._mount.parts
        return parts.held_by(self._mount.robot) if parts else ""

    def _start(self, closing: bool, now: int) -> Ticket:
        state = self.state
        state.ticket, state.due, state.closing = state.ticket + 1, now + 100_000_000, closing
        return Ticket(state.ticket)

    def start_grip(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        return self._start(True, now)

    def start_release(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        return self._start(False, now)

    def halt(self, now: int) -> None:
        self.state.due = None

    def next_wake(self) -> int | None:
        return self.state.due

    def wake(self, now: int) -> None:
        self.state.due = None
        parts, robot, refused = self._mount.parts, self._mount.robot, None
        if parts and self._mount.tool_pose and self.state.closing:
            near = parts.near(self._mount.tool_pose(now), self._reach, now)
            if near:
                parts.take(near[0], robot, now)
            else:
                refused = Refused("MISSED: nothing is near the magnet")
        elif parts and self._held():
            parts.let_go(robot, now)
        for listener in self._listeners:
            listener(Ticket(self.state.ticket), refused, now)

    def busy(self) -> bool:
        return self.state.due is not None

    def status(self, now: int) -> HandStatus:
        held = bool(self._held())
        return HandStatus("CLOSED" if held else "OPENED", part_detected=held)

    def on_finished(self, listener: Finished) -> None:
        self._listeners.append(listener)

    def on_lost(self, listener: Any) -> None: ...
    def faults(self) -> dict[str, Any]:
        return {}
    def inject(self, fault: str, parameters: Any, now: int) -> None: ...
    def active_faults(self) -> list[str]:
        return []
    def reset(self, now: int) -> None: ...

build = Magnet
'''
JOB = '''
"""A job: the tool visits the points of a part, one after the other, and counts them."""
from collections.abc import Mapping
from typing import Any
from msgspec import Struct
from understudy.space.pose import Position
from understudy.errors import Refused
from understudy.jobs.arm_motion import ControllerMotion
from understudy.ports import Component, Ticket
from understudy.ports.jobs import JobSite
from understudy.ports.operation import Target
from understudy.ports.job_arm import JobArm

class InspectionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    points: tuple[Position, ...] = ()

class State(Struct):
    visited: int = 0
    running: bool = False

class Inspection:
    """Moves to the next point when the move before has ended."""

    def __init__(self, config: InspectionConfig, motion: ControllerMotion) -> None:
        self.state, self._points, self._motion = State(), config.points, motion
        motion.on_finished(self._ended)

    def start(self, now: int) -> Refused | None:
        self.state = State(running=True)
        return self._next(now)

    def _next(self, now: int) -> Refused | None:
        pose = self._points[self.state.visited].pose()
        ticket = self._motion.move(Target(None, pose, False, 0.2), now)
        return ticket if isinstance(ticket, Refused) else None

    def _ended(self, ticket: Ticket, refused: Refused | None, now: int) -> None:
        self.state.visited += refused is None
        self.state.running = refused is None and self.state.visited < len(self._points)
        if self.state.running:
            self._next(now)

    def status(self, now: int) -> State:
        return self.state

SECTIONS = {"inspection": InspectionConfig}

def needs(sections: Mapping[str, Any]) -> tuple[type, ...]:
    return (JobArm,) if "inspection" in sections else ()

def build(site: JobSite) -> dict[str, Component]:
    if "inspection" not in site.sections:
        return {}
    arm = site.arm
    motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    job = Inspection(site.sections["inspection"], motion)
    return {"inspection_motion": motion, "inspection": job}
'''
COMMANDS = '''
"""Commands and queries of the inspection."""
from typing import Any
from understudy.operator.cell import OperatedCell
from understudy.operator.robots import Jobs
from understudy.operator.table import Command, command, commands_of, query
from inspection.job import Inspection

def commands(cell: OperatedCell) -> list[Command]:
    jobs = Jobs(cell.robots, Inspection, "inspection")
    return commands_of(InspectionCommands(jobs)) if jobs else []

class InspectionCommands:
    def __init__(self, jobs: Jobs[Inspection]) -> None:
        self._jobs = jobs

    @query()
    def inspection(self, robot: str = "") -> Any:
        """How many points the tool has visited."""
        return self._jobs.look(robot)

    @command()
    def start_inspection(self, robot: str = "") -> Any:
        """Visit all points of the part."""
        return self._jobs.act(robot, Inspection.start)
'''
PAGE = '''
"""A page that is shown if the cell has the query `inspection`, and asks it."""
from pathlib import Path
from typing import Any
from nicegui import ui
from understudy.hmi.frame.browser import Browser
from understudy.hmi.page import Page

def build(browser: Browser) -> None:
    label = ui.label().props("data-mark=visited")

    def show(answer: dict[str, Any]) -> None:
        label.set_text(f"{answer['visited']} points")

    ui.timer(0.5, lambda: browser.ask("inspection", show))

PAGE = Page("inspection", "F10", "search", build, folder=Path(__file__).parent, needs="inspection")
'''
COMMAND_LINE = '''
"""The command `understudy inspect`: runs the job of a cell headless."""
from typing import Any
from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.wire.exchange import InProcessCell

SUMMARY = "Visit the points of a part with the tool of an arm."
EXAMPLE = "inspect my_cell.yaml"

def inspect(cell: str) -> None:
    """Run the inspection of a cell on virtual time."""
    config = load_config(cell)
    built = build_cell(config)
    parts: dict[str, Any] = dict(built.components)
    parts["g60"].connect(0)
    parts["g60"].enable(0)
    parts["g60.inspection"].start(0)
    InProcessCell(built).run_while(lambda: parts["g60.inspection"].state.running)
    title = config.sections["report_title"]
    print(f"{title}: {parts['g60.inspection'].state.visited} points visited")
'''
SECTION = '"""Key `report_title` of a cell file."""\nConfig = str\n'
ENTRY_POINTS = """
[understudy.devices]
magnet = inspection.magnet
[understudy.jobs]
inspection = inspection.job
[understudy.commands]
inspection = inspection.commands
[understudy.pages]
inspection = inspection.page
[understudy.cli]
inspect = inspection.command_line
[understudy.sections]
report_title = inspection.section
"""
CELL = """
report_title: plate 7
hmi: {}
robots:
  g60:
    kind: arm
    tools: {1: {tcp_mm_deg: [0, 0, 80, 0, 0, 0]}}
    tool: 1
    magnet: {reach_mm: 80}
    inspection: {points: [{x: 400, y: 0, z: 400, rx: 180}, {x: 450, y: 50, z: 400, rx: 180}]}
    pickplace:
      source: fixed
      pick_position: {x: 400, y: 0, z: 60, rx: 180}
      place_position: {x: 400, y: 150, z: 60, rx: 180}
parts:
  - {name: plate, class: plate, dimensions_mm: [60, 60, 40], position_mm: [400, 0, 40]}
environment:
  objects: [{name: table, type: box, position_mm: [450, 0, 10], dimensions_mm: [600, 600, 20]}]
"""
FILES = {
    "inspection/__init__.py": "",
    "inspection/magnet.py": MAGNET,
    "inspection/job.py": JOB,
    "inspection/commands.py": COMMANDS,
    "inspection/page.py": PAGE,
    "inspection/texts.yaml": "inspection:\n  title: {en: Inspection, vi: Kiểm tra}\n",
    "inspection/command_line.py": COMMAND_LINE,
    "inspection/section.py": SECTION,
    "inspection-1.0.dist-info/METADATA": "Name: inspection\nVersion: 1.0\n",
    "inspection-1.0.dist-info/entry_points.txt": ENTRY_POINTS,
    "cell.yaml": CELL,
}
TABLE = """
import asyncio
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.hmi.page import pages_for

async def main():
    live = Live(load_config("cell.yaml"), Options(rate="step", ephemeral=True))
    await live.start()
    ask = lambda name, **given: live.commands.call(name, given, "operator")
    ask("enable", robot="g60")
    assert ask("start_inspection")["running"]
    arrived = asyncio.get_running_loop().create_future()
    ask("advance", seconds=20.0).then(arrived.set_result)
    await arrived
    print("query:", ask("inspection"))
    print("page:", [page.name for page in pages_for(["inspection"]) if page.needs == "inspection"])
    await live.stop()

asyncio.run(main())
"""


def install(folder: Path) -> None:
    """Writes the package as pip does; Python finds it, since everything runs in this folder."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def main(folder: Path) -> None:
    install(folder)
    said = run(folder, "-m", "understudy", "inspect", "cell.yaml")
    assert said == "plate 7: 2 points visited\n", said
    assert "Visit the points of a part" in run(folder, "-m", "understudy", "--help")
    words = ("-m", "understudy", "pick-place", "run", "--cell=cell.yaml", "--cycles=1", "--json")
    summary = json.loads(run(folder, *words))
    assert summary["success"] == 1, summary
    table = run(folder, "-c", TABLE)
    assert "'visited': 2" in table, table
    assert "page: ['inspection']" in table, table
    print(said + table, end="")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
