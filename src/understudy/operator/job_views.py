"""Queries that pages draw: the tables of the jobs, the last cycles, the places of a pallet, and the
last result of vision."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol, runtime_checkable

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.operator.jobs import PALLET, PICK_PLACE, SOURCE_PALLET, Jobs, OfJob, OfPallet
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command
from understudy.ports import Component
from understudy.ports.vision import DetectedObject, VisionResult
from understudy.space.pose import pose_mm_deg
from understudy.units import MM, seconds

if TYPE_CHECKING:
    from understudy.jobs.pick_place.pallet import PalletLayout
    from understudy.sight.lens import Lens

VISION = "vision"
CYCLES_KEPT = 60
MOST_PLACES = 2000
"""Places of a pallet that the scene draws."""
HALF_PLACE = 0.4
"""Half the side of a drawn place, of the pitch of the pallet."""
AXIS_M = 0.03
"""Length of the axes that are drawn at a detected object."""


class LayerOfPallet(OfPallet, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`layer`: -1 means the one that is next."""

    layer: Annotated[int, Meta(ge=-1, le=1000)] = -1


@runtime_checkable
class HasLens(Protocol):
    """A part of vision that knows its camera."""

    @property
    def model(self) -> "CameraFacts": ...


class CameraFacts(Protocol):
    """`at`: a 4×4 matrix, on the flange or in the cell."""

    @property
    def lens(self) -> "Lens": ...

    @property
    def at(self) -> Any: ...

    @property
    def on_flange(self) -> bool: ...


@runtime_checkable
class HasPlaces(Protocol):
    """A pallet."""

    @property
    def layout(self) -> "PalletLayout": ...


class Cycle(Struct, frozen=True):
    """A cycle that has ended. `seconds`: 0 for one that failed; `code`: why it failed."""

    number: int
    success: bool
    seconds: float
    code: str


@dataclass(slots=True)
class LastResult:
    """The last answer of vision, and when it came."""

    result: VisionResult | Refused | None = None
    at: int = 0


class JobViews:
    """The queries of pages about the jobs of a cell."""

    def __init__(self, robots: Robots) -> None:
        self._jobs = Jobs(robots)
        self._cycles: dict[str, deque[Cycle]] = {}
        self._results: dict[str, LastResult] = {}
        for name in self._jobs.having(PICK_PLACE):
            self._follow_cycles(name, robots.components[name][f"{name}.{PICK_PLACE}"])
        for name in self._jobs.having(VISION):
            self._follow_vision(name, robots.components[name][f"{name}.{VISION}"])

    def commands(self) -> list[Command]:
        add, found = Command, list[Command]()
        if self._jobs.having(PICK_PLACE):
            found += [
                add("job_tables", "states and transitions of the jobs", _tables, role="viewer"),
                add("pick_place_cycles", "the last cycles", self._last_cycles, OfJob, "viewer"),
            ]
        if self._jobs.having(PALLET) or self._jobs.having(SOURCE_PALLET):
            doc = "the places of one layer of a pallet"
            found.append(add("pallet_layer", doc, self._layer, LayerOfPallet, "viewer", large=True))
        if self._jobs.having(VISION):
            doc = "what vision has seen last (px; mm and deg from the camera)"
            found.append(add("vision_result", doc, self._seen, OfJob, "viewer", large=True))
        return found

    # ── cycles ──

    def _follow_cycles(self, name: str, job: Any) -> None:
        kept = self._cycles[name] = deque(maxlen=CYCLES_KEPT)

        def ended(number: int, success: bool, now: int) -> None:
            while kept and kept[-1].number >= number:  # the cell was restored to an earlier state
                kept.pop()
            status = job.status(now)
            lasted = status.statistics.last_s if success else 0.0
            kept.append(Cycle(number, success, lasted, status.code or status.reason))

        job.on_cycle(ended)

    def _last_cycles(self, given: OfJob) -> Any:
        found = self._jobs.part(given.robot, PICK_PLACE)
        if isinstance(found, Refused):
            return found
        robot, job = found
        count = robot.simulated.time.act(job.status).cycle_count
        rows = [cycle for cycle in self._cycles[robot.name] if cycle.number <= count]
        return {"robot": robot.name, "cycles": rows}

    # ── pallet ──

    def _layer(self, given: LayerOfPallet) -> Any:
        found = self._jobs.part(given.robot, given.kind)
        if isinstance(found, Refused):
            return found
        robot, pallet = found
        layout, last = pallet.layout, pallet.layout.config.layers - 1
        layer = pallet.get_current_layer() if given.layer < 0 else given.layer
        if layer > last:
            return Refused(f"there is no layer {layer}; allowed: 0…{last}")
        (of_layer,) = (layout.cells[:, 2] == layer).nonzero()
        places = zip(of_layer.tolist(), layout.cells[of_layer, :2].tolist(), strict=True)
        return {
            "robot": robot.name, "layer": layer, "layers": last + 1,
            "rows": layout.config.rows, "columns": layout.config.columns,
            "depalletise": layout.config.depalletise,
            "places": [[index, *place] for index, place in places],
            "unreachable": pallet.unreachable,
        }  # fmt: skip

    # ── vision ──

    def _follow_vision(self, name: str, vision: Any) -> None:
        last = self._results[name] = LastResult()

        def answered(_: int, result: VisionResult | Refused, now: int) -> None:
            last.result, last.at = result, now

        vision.on_result(answered)

    def _seen(self, given: OfJob) -> Any:
        found = self._jobs.part(given.robot, VISION)
        if isinstance(found, Refused):
            return found
        robot, vision = found
        return robot.simulated.time.act(lambda now: self._shown(robot, vision, now))

    def _shown(self, robot: Robot, vision: Any, now: int) -> dict[str, Any]:
        last = self._results[robot.name]
        lens = vision.model.lens if isinstance(vision, HasLens) else None
        answer: dict[str, Any] = {
            "robot": robot.name, "camera": _camera(vision.model) if lens else None,
            "frame_id": 0, "exposed_at_s": None, "age_s": None, "error": "", "objects": [],
        }  # fmt: skip
        result = last.result
        if result is None or last.at > now:  # the cell was restored to an earlier state
            return answer
        if isinstance(result, Refused):
            return {**answer, "age_s": seconds(now - last.at), "error": result.reason}
        return {
            **answer,
            "frame_id": result.frame_id,
            "exposed_at_s": seconds(result.exposed_at),
            "age_s": seconds(now - result.exposed_at),
            "objects": [object_facts(each, lens) for each in result.objects],
        }


def _tables(_: object) -> dict[str, Any]:
    from understudy.jobs.modes.table import STEPS
    from understudy.jobs.pick_place.state import CYCLE, RUNNING, TRANSITIONS

    return {
        "running": RUNNING,
        "cycle": _edges(CYCLE),
        "transitions": _edges(TRANSITIONS),
        "changeover": STEPS,
    }


def _edges(table: Mapping[tuple[Any, Any], Any]) -> list[list[str]]:
    """Rows of state, event and next state."""
    return [[state, event, after] for (state, event), after in table.items()]


def _camera(model: CameraFacts) -> dict[str, Any]:
    return {
        "width": model.lens.width,
        "height": model.lens.height,
        "mount": "eye_in_hand" if model.on_flange else "eye_to_hand",
    }


def object_facts(seen: DetectedObject, lens: "Lens | None") -> dict[str, Any]:
    """A detected object, as pages draw it; without a lens it has no axes."""
    return {
        "id": seen.id,
        "class": seen.class_name,
        "confidence": seen.confidence,
        "bbox": seen.bbox,
        "pose_mm_deg": pose_mm_deg(seen.pose),
        "axes_px": [] if lens is None else _axes(seen, lens),
    }


def _axes(seen: DetectedObject, lens: "Lens") -> list[list[float]]:
    """The pixels of the origin of an object and of the ends of its axes; empty if one of them is
    not in front of the camera."""
    import numpy as np

    from understudy.space.transform import matrix

    place = matrix(seen.pose)
    ends = np.vstack([np.zeros(3), AXIS_M * np.eye(3)]) @ place[:3, :3].T + place[:3, 3]
    if ends[:, 2].min() <= 0.0:
        return []
    pixels: list[list[float]] = lens.pixels(ends).round(2).tolist()
    return pixels


# ── for the scene ───────────────────────────────────────────────────────────────────────────────


def job_site(parts: Mapping[str, Component], robot: str) -> dict[str, Any]:
    """The camera and the pallets of a robot, as the scene draws them."""
    vision: object = parts.get(f"{robot}.{VISION}")
    pallets: list[object] = [parts.get(f"{robot}.{kind}") for kind in (PALLET, SOURCE_PALLET)]
    return {
        "camera": _view(vision.model) if isinstance(vision, HasLens) else None,
        "pallets": [_places(each.layout) for each in pallets if isinstance(each, HasPlaces)],
    }


def _view(model: CameraFacts) -> dict[str, Any]:
    """The place of a camera, and the corners of its picture at z = 1."""
    import numpy as np

    lens = model.lens
    right, bottom = lens.width - 0.5, lens.height - 0.5
    corners = np.array([[-0.5, -0.5], [right, -0.5], [right, bottom], [-0.5, bottom]])
    return {
        "on_flange": model.on_flange,
        "at": model.at.reshape(-1).tolist(),
        "corners": lens.rays(corners).tolist(),
    }


def _places(layout: "PalletLayout") -> dict[str, Any]:
    """The tool points of the places in their order, and half a place along columns and rows."""
    pitches = (layout.config.pitch_x, layout.config.pitch_y)
    return {
        "places": layout.points[:MOST_PLACES].round(5).tolist(),
        "half": [
            (layout.axes[:, n] * (pitch * MM * HALF_PLACE)).tolist()
            for n, pitch in enumerate(pitches)
        ],
        "depalletise": layout.config.depalletise,
    }
