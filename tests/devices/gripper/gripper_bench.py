"""A simulated gripper with its pins and a few parts, on one time axis in milliseconds."""

from typing import Any

import numpy as np
from msgspec import convert
from msgspec.structs import replace

from understudy.agenda import advance
from understudy.devices.gripper import Config
from understudy.devices.gripper.controller import build_gripper
from understudy.errors import Refused
from understudy.ports.device import Mount
from understudy.ports.workpieces import WorkpieceReading
from understudy.simulation.io.virtual_io import Config as PinsConfig
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.scenario import Rule, Scenario
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import matrix
from understudy.units import NS_PER_MS

DOWN = pose_of((400, 0, 100, 180, 0, 0))
"""The tool looks down; its Y is the Y of the cell, mirrored."""


def box(
    name: str = "cube",
    size_mm: tuple[float, float, float] = (40, 40, 40),
    at: tuple[float, ...] = (400, 0, 100, 0, 0, 0),
    mass: float = 0.3,
) -> WorkpieceReading:
    x, y, z = (value / 1e3 for value in size_mm)
    return WorkpieceReading(name, "part", pose_of(at), (x, y, z), mass)


class FewParts:
    """`WorkpiecesInReach` of a handful of boxes; they stay where they are let go."""

    def __init__(self, *parts: WorkpieceReading) -> None:
        self.all = {part.name: part for part in parts}
        self.log: list[tuple[str, float]] = []

    def near(self, tool: Pose, region: tuple[float, float, float], now: int) -> list[str]:
        """By corners of the bounding box in the tool's axes: enough for upright boxes."""
        frame, found = matrix(tool), []
        for part in self.all.values():
            own = matrix(part.pose)
            centre = frame[:3, :3].T @ (own[:3, 3] - frame[:3, 3])
            half = np.abs(frame[:3, :3].T @ own[:3, :3]) @ np.array(part.size) / 2.0
            if part.state == "resting" and (np.abs(centre) < half + np.array(region) / 2.0).all():
                found.append((float(np.linalg.norm(centre)), part.name))
        return [name for _, name in sorted(found)]

    def reading(self, name: str, now: int) -> WorkpieceReading:
        return self.all[name]

    def take(self, name: str, robot: str, now: int) -> None:
        assert not self.held_by(robot)
        self.log.append((f"take {name}", now / NS_PER_MS))
        self.all[name] = replace(self.all[name], state="held", holder=robot)

    def let_go(self, robot: str, now: int) -> None:
        name = self.held_by(robot)
        self.log.append((f"drop {name}", now / NS_PER_MS))
        self.all[name] = replace(self.all[name], state="resting", holder="")

    def held_by(self, robot: str) -> str:
        return next((name for name, part in self.all.items() if part.holder == robot), "")


class Bench:
    """`path`: the tool moves there from the present time on."""

    def __init__(
        self,
        *parts: WorkpieceReading,
        rules: dict[str, Rule] | None = None,
        tool: Pose = DOWN,
        **keys: Any,
    ) -> None:
        self.io = VirtualIO(PinsConfig())
        self.parts = FewParts(*parts)
        self.tool, self.lift, self.lifted_at = tool, 0.0, 0
        self.fault_source = Scenario(rules or {}, 1)
        mount = Mount(
            self.fault_source, self.io, robot="g60", tool_pose=self.tool_pose, parts=self.parts
        )
        self.gripper = build_gripper("g60.gripper", convert(keys, Config), mount)
        self.fault_source.act_on({"g60.gripper": self.gripper})
        self.ended: list[tuple[float, str]] = []
        self.lost: list[float] = []
        self.now = 0
        self.gripper.on_finished(
            lambda _, refused, now: self.ended.append(
                (round(now / NS_PER_MS, 3), refused.reason if refused else "")
            )
        )
        self.gripper.on_lost(lambda now: self.lost.append(now / NS_PER_MS))

    def tool_pose(self, now: int) -> Pose:
        """From `lifted_at` on the tool goes up with the acceleration `lift`."""
        time = max(now - self.lifted_at, 0) / 1e9
        return self.tool._replace(z=self.tool.z + self.lift * time**2 / 2.0)

    def raise_tool(self, acceleration: float) -> None:
        self.lift, self.lifted_at = acceleration, self.now

    def run(self, to_ms: float) -> "Bench":
        self.now = round(to_ms * NS_PER_MS)
        advance([self.io, self.gripper, self.fault_source], self.now)
        return self

    def on(self, for_ms: float) -> "Bench":
        return self.run(self.now / NS_PER_MS + for_ms)

    def grip(self, for_ms: float = 1000) -> str:
        """Grips and lets time pass; the reason of a refusal."""
        assert not isinstance(self.gripper.start_grip(self.now), Refused)
        return self.on(for_ms).ended[-1][1]

    def release(self, for_ms: float = 1000) -> str:
        assert not isinstance(self.gripper.start_release(self.now), Refused)
        return self.on(for_ms).ended[-1][1]

    def inject(self, fault: str, **figures: float) -> Any:
        return self.fault_source.inject(fault, "g60.gripper", figures, self.now)

    def edges(self, bank: str, pin: int) -> list[tuple[float, bool]]:
        found = (c for c in self.io.history() if (c.bank, c.pin) == (bank, pin))
        return [(round(c.at / NS_PER_MS, 3), c.value) for c in found]

    @property
    def status(self) -> Any:
        return self.gripper.status(self.now)
