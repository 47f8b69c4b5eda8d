"""The detectors of a robot's vision process: the query `vision_detectors` and the command
`set_vision_detectors`."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, to_builtins

from understudy.config import CellConfig
from understudy.config.fields import fields_of
from understudy.errors import Refused, unknown
from understudy.operator.jobs import OfJob
from understudy.operator.robots import Robots
from understudy.operator.table import Command
from understudy.registry import modules
from understudy.vision.assembly import section_in_use
from understudy.vision.detector_config import DetectorTables, plain


class SetDetectors(Struct, frozen=True, forbid_unknown_fields=True):
    """`detectors`: as the section `vision` has them; null: those of the cell file."""

    detectors: DetectorTables | None
    robot: str = ""


@runtime_checkable
class HasDetectors(Protocol):
    """Vision by a process, whose detectors can be set if it looks for objects."""

    def detectors(self) -> Sequence[Mapping[str, Any]]: ...

    def can_set_detectors(self) -> bool: ...

    def set_detectors(self, tables: Sequence[Mapping[str, Any]] | None) -> Refused | None: ...


class DetectorCommands:
    """For the robots with a section `vision`, or a job that uses one."""

    def __init__(self, config: CellConfig, robots: Robots) -> None:
        sections = {name: section_in_use(robot.sections) for name, robot in config.robots.items()}
        self._sections = {name: each for name, each in sections.items() if each is not None}
        self._robots = robots

    def commands(self) -> list[Command]:
        if not self._sections:
            return []
        return [
            Command(
                "vision_detectors", "the detectors of the vision process, and their keys",
                self._look, OfJob, role="viewer",
            ),
            Command(
                "set_vision_detectors", "other detectors from the next picture on; null: as in the"
                " cell file", self._set, SetDetectors,
            ),
        ]  # fmt: skip

    def _look(self, given: OfJob) -> Any:
        robot = self._named(given.robot)
        return robot if isinstance(robot, Refused) else self._shown(robot)

    def _set(self, given: SetDetectors) -> Any:
        robot = self._named(given.robot)
        if isinstance(robot, Refused):
            return robot
        vision = self._vision(robot)
        if vision is None:
            return Refused(
                f"{robot} has no vision process: its vision knows where the parts are and has no "
                "detectors; start the cell with --vision process, or set vision.source: process"
            )
        if robot in [each.name for each in self._robots.real()]:
            return Refused(f"{robot} is REAL: the detectors of its simulated job cannot be set")
        return vision.set_detectors(given.detectors) or self._shown(robot)

    def _named(self, robot: str) -> str | Refused:
        name = robot or (next(iter(self._sections)) if len(self._sections) == 1 else "")
        if name not in self._sections:
            return Refused(str(unknown("robot with vision", name, self._sections)))
        return name

    def _vision(self, robot: str) -> HasDetectors | None:
        part: object = self._robots.components[robot].get(f"{robot}.vision")
        return part if isinstance(part, HasDetectors) else None

    def _shown(self, robot: str) -> dict[str, Any]:
        """`fields`: the keys of each kind, for detectors that can be set."""
        section, vision = self._sections[robot], self._vision(robot)
        configured = [plain(table) for table in section.detectors]
        settable = vision is not None and vision.can_set_detectors()
        present = list(vision.detectors()) if vision is not None and settable else configured
        return {
            "robot": robot,
            "source": section.source,
            "detectors": present,
            "configured": configured,
            "changed": present != configured,
            "settable": settable,
            "fields": _fields() if settable else {},
        }


def _fields() -> dict[str, Any]:
    """The keys of every kind of detector."""
    return {kind: to_builtins(fields_of(module.Config)) for _, kind, module in modules("detectors")}
