"""The channels of a cell: what doors and logs tell the tools of others, as messages with a topic.

A door or a log listens; what it is given are messages in the shapes of Foxglove's schemas, and each
channel has its JSON schema. A door that speaks another language translates the values
(`Message.value`, the classes of `doors/messages.py`).

    channels = channels_of(live)                       one for all doors of a cell
    stop = channels.listen(lambda message: …)          begins with the present state of everything
    channels.channels                                  topic → Channel, those that are known by now
    channels.latest                                    topic → last message of a state

The listener is called on the event loop of the cell. `Message.json()` may take long for a picture:
call it in a thread. Journal, log, alarms and commands are events; all others are states, sent when
they change. Robots are read on the cell's own time, twenty times per simulated second while
something moves, and as seldom as the share of wall time (`Budget`) needs it.

    /tf                         foxglove.FrameTransforms    every frame of the cell
    /scene/robots, /environment, /workpieces, /trails       foxglove.SceneUpdate
    /<robot>/joint_states       foxglove.JointStates
    /<robot>/tool_pose          foxglove.PoseInFrame        /<robot>/pose of a mobile robot
    /mobile_robots/poses        foxglove.PosesInFrame
    /<robot>/scan/<scanner>     foxglove.LaserScan
    /<robot>/camera/image, /calibration, /annotations       CompressedImage, CameraCalibration, …
    /<robot>/state, /program, /io, /detections              understudy.RobotState, …
    /<robot>/<device>           understudy.DeviceState      welder, gripper …
    /log, /alarms, /violations  foxglove.Log, understudy.Happening
    /metrics, /commands         understudy.Metrics, understudy.Command
    /journal/<endpoint>         understudy.WireEvent        what passed at the wires
    /understudy/…               for our own pages: `native`
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import to_builtins

from understudy.agenda import ClockState
from understudy.app.live import Live
from understudy.config import CellConfig
from understudy.doors import messages as m
from understudy.doors.scene import (
    PART,
    WORLD,
    RobotFrames,
    environment_entities,
    pose_message,
    pose_of_rows,
    robot_entities,
    workpiece_entities,
)
from understudy.errors import Refused
from understudy.operator.cell import OperatedCell
from understudy.operator.environment import HoldsObjects
from understudy.operator.events import Event as LogEvent
from understudy.operator.events import EventLog, EventSources
from understudy.operator.history import NEVER, PERIOD, Budget
from understudy.operator.pictures import coded
from understudy.operator.pins import pinboard
from understudy.operator.robots import Robot, Robots
from understudy.operator.scene import SceneQuery
from understudy.operator.views import CellWatch
from understudy.operator.workpieces import part_rows, workpieces_in
from understudy.ports.device import Plotted, Preview, ShowsPicture
from understudy.ports.hmi import (
    CellView,
    HasLasers,
    HasPanel,
    HasSeenTogether,
    Known,
    Later,
    RobotView,
    Trailing,
)
from understudy.ports.object_finder import FINDER, DetectedObject, FoundObjects, ObjectFinder
from understudy.ports.program import ProgramControl
from understudy.sight.lens import CameraModel, Lens, resized
from understudy.simulation.cell import Cell
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.units import NS_PER_SECOND, seconds
from understudy.wire.chat import escape
from understudy.wire.connection import Event
from understudy.wire.exchange import InProcessCell

STILL_PERIOD = SLOW_PERIOD = NS_PER_SECOND
"""Simulated time between two readings while nothing moves, and of what changes slowly."""
LOOK_SECONDS = 0.1
"""Wall time between two looks at what is not read on the cell's own time."""
MOST_SINGLE = 20
"""Mobile robots that have topics of their own; of more of them there are `/mobile_robots/poses`."""
SCANS_PER_SECOND = 10
TRAIL_POINTS = 2000
PICTURE_WIDTH = 480
LONGEST_TEXT = 2000
LEVELS = {"alarm": m.ERROR, "collision": m.ERROR, "fault": m.WARNING}
BOX, LABEL, CLEAR = m.Color(0.1, 0.9, 0.3), m.Color(1.0, 1.0, 1.0), m.Color(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Channel:
    """A topic and the schema of its messages. `native`: for our own pages, without a schema that
    others know. `is_state`: the last message holds until the next one."""

    topic: str
    schema_name: str
    schema: bytes
    is_state: bool = True
    native: bool = False


class Message:
    """A value of a channel at a simulated time."""

    __slots__ = ("_json", "_lock", "_value", "at", "channel")

    def __init__(self, channel: Channel, at: int, value: Any) -> None:
        """``value``: a Struct, or a function that makes it, in any thread."""
        self.channel, self.at = channel, at
        self._value = value
        self._json: bytes | None = None
        self._lock = threading.Lock() if callable(value) else None

    @property
    def value(self) -> Any:
        if self._lock is None:
            return self._value
        with self._lock:
            if callable(self._value):
                self._value = self._value()
            return self._value

    def json(self) -> bytes:
        """The same bytes for all listeners."""
        if self._json is None:
            self._json = m.write(self.value)
        return self._json


Listener = Callable[[Message], None]


# ── the cell that is read ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Source:
    """A cell as its channels read it. `poll`: finds events that are not reported. `immediate`: its
    queries can be asked while time runs."""

    config: CellConfig
    cell: Cell
    robots: Robots
    log: EventLog
    poll: Callable[[int], None]
    view: Callable[[int], CellView]
    scene: Callable[[], Any]
    immediate: bool = False


class _VirtualTime:
    """The time of a cell without a pump."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def now(self) -> int:
        return self._cell.now

    def real_seconds(self) -> float:
        return seconds(self._cell.now)

    def act(self, action: Callable[[int], Any]) -> Any:
        return action(self._cell.now)


def source_of(config: CellConfig, cell: Cell) -> Source:
    """A cell on virtual time, without a live one around it."""
    time_: Any = _VirtualTime(cell)
    robots, log = Robots(config, cell.components, time_), EventLog()
    events = EventSources(cell, robots, log, time_.now)
    environment = cell.components["environment"]
    assert isinstance(environment, CellEnvironment)
    runs: Any = None
    scene = SceneQuery(config, robots, environment, cell.components, runs)
    watch = CellWatch(cell.components, time_, ClockState())
    return Source(
        config, cell, robots, log, events.poll, watch.look_at, scene.whole, immediate=True
    )


def source_of_live(own: OperatedCell) -> Source:
    ask: Callable[[], Any] = lambda: own.table.call("scene", {}, "viewer")  # noqa: E731
    view = own.watch.look_at
    return Source(own.config, own.cell, own.robots, own.log, own.events.poll, view, ask)


# ── the channels ────────────────────────────────────────────────────────────────────────────────


@dataclass
class _RobotTopics:
    """What is known of a robot between two readings."""

    robot: Robot
    joints: list[str]
    view: RobotView | None = None
    state: tuple[Any, ...] = ()
    pins: Any = None
    board: VirtualIO | None = None
    program: ProgramControl | None = None
    line: tuple[Any, ...] = ()
    lines: tuple[int, list[str]] = (-1, [])


@dataclass
class _Camera:
    robot: str
    component: ShowsPicture
    model: CameraModel
    at: int = -SLOW_PERIOD
    due: bool = True


class CellChannels:
    """`Recorder` of a cell; see the module for its topics."""

    def __init__(self, source: Source, budget: Budget | None = None) -> None:
        self.due = NEVER
        self.channels: dict[str, Channel] = {}
        self.latest: dict[str, Message] = {}
        self.frames: dict[str, RobotFrames] = {}
        self._source = source
        self._budget = budget
        self._listeners: list[Listener] = []
        self._values: dict[str, Any] = {}
        components = source.cell.components
        group = next((c for c in components.values() if isinstance(c, HasSeenTogether)), None)
        self._together = () if group is None else tuple(group.seen_together.names())
        lasers: Any = None if group is None else group.seen_together
        self._lasers = lasers if isinstance(lasers, HasLasers) else None
        self._scale = max(1, len(self._together) // MOST_SINGLE)
        single = len(self._together) <= MOST_SINGLE
        self._robots = {
            robot.name: _topics_of(robot, components)
            for robot in source.robots
            if single or robot.name not in self._together
        }
        self._panels = {
            name: component
            for name, component in components.items()
            if isinstance(component, HasPanel | Plotted)
        }
        self._trails = {n: c for n, c in components.items() if isinstance(c, Trailing)}
        self._known: dict[str, Known] = {}
        self._trail_points: dict[str, list[tuple[float, float, float]]] = {}
        self._parts = workpieces_in(components)
        self._parts_version = 0
        self._cameras = dict(_cameras(components))
        self._pictures_due = False
        self._events_seen = 0
        self._slow_at = self._scans_at = -SLOW_PERIOD
        self._scene_key: Any = None
        self._scene_asked = False
        self._last_view: Mapping[str, RobotView] = {}
        self._contacts: list[Any] = []
        for name, finder in components.items():
            if isinstance(finder, ObjectFinder) and name.endswith(f".{FINDER}"):
                self._follow_finder(name.partition(".")[0], finder)
        source.log.on_note.append(self._noted)
        for endpoint in source.cell.faces:
            self._channel(f"/journal/{endpoint}", m.WireEvent, is_state=False)
        self._channel("/commands", m.Command, is_state=False)
        for topic, kind in (
            ("/log", m.Log),
            ("/alarms", m.Happening),
            ("/violations", m.Happening),
        ):
            self._channel(topic, kind, is_state=False)

    # ── listeners ──

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls ``listener`` with every message, and at the next reading with the state of
        everything. The returned function ends that."""
        self._listeners.append(listener)
        self._forget()
        self.due = self._source.cell.now

        def stop() -> None:
            self._listeners.remove(listener)
            if not self._listeners:
                self.due = NEVER

        return stop

    @property
    def heard(self) -> bool:
        return bool(self._listeners)

    def _forget(self) -> None:
        """Everything counts as changed."""
        self._values.clear()
        self._last_view = {}
        self._known.clear()
        self._trail_points.clear()
        self._parts_version = 0
        self._scene_key = None
        self._slow_at = self._scans_at = -SLOW_PERIOD
        for each in self._robots.values():
            each.view, each.state, each.pins, each.line = None, (), None, ()
        for camera in self._cameras.values():
            camera.due, camera.at = True, -SLOW_PERIOD

    # ── the cell's time ──

    def next_reading(self, to: int) -> int | None:
        at = max(self.due, self._source.cell.now)
        return at if self._listeners and at <= to else None

    def read(self, now: int) -> None:
        if self._budget is None:
            changed = self._read(now)
            period = PERIOD
        else:
            with self._budget:
                changed = self._read(now)
            period = self._budget.period()
        moving = changed or self._source.cell.busy()
        self.due = now + (period * self._scale if moving else STILL_PERIOD)

    def acted(self, now: int) -> None:
        """A command has come: what it has changed is read soon."""
        if self._listeners:
            self.due = min(self.due, now + PERIOD)

    def _noted(self) -> None:
        """Something has happened: the cell is read at this instant."""
        if self._listeners:
            self.due = min(self.due, self._source.cell.now)

    def passed(self, event: Event) -> None:
        """Something has passed at a wire."""
        if not self._listeners:
            return
        self.due = min(self.due, event.at + PERIOD)
        channel = self.channels.get(f"/journal/{event.endpoint}")
        if channel is not None:
            self._send(Message(channel, event.at, lambda: _wire_event(event)))

    def commanded(self, name: str, parameters: Mapping[str, Any]) -> None:
        """A command was carried out."""
        if self._listeners:
            now = self._source.cell.now
            given = {key: value for key, value in parameters.items() if key != "secret"}
            value = m.Command(m.time_of(now), name, to_builtins(given))
            self._put("/commands", m.Command, value, now, is_state=False)

    def look(self) -> None:
        """What is not read on the cell's own time: the scene, and events of robots that report
        none. Called ten times a second, between two steps of the cell."""
        if not self._listeners:
            return
        now = self._source.cell.now
        self._source.poll(now)
        self._read_events(now)
        key = self._key_of_scene()
        if key == self._scene_key or self._scene_asked:
            return
        answer = self._source.scene()
        if isinstance(answer, Later):
            self._scene_asked = True
            answer.then(lambda answer: self._scene_came(key, answer))
        else:
            self._scene_came(key, answer)

    def finish(self) -> None:
        """Sends what has changed since the last reading."""
        self.look()
        self._read(self._source.cell.now)

    # ── a reading ──

    def _read(self, now: int) -> bool:
        """Sends what has changed; whether anything has."""
        if self._source.immediate:
            self.look()
        view = self._source.view(now)
        changed = self._read_robots(view, now)
        for name in self._panels:
            changed |= self._read_panel(name, now)
        if self._parts is not None and self._parts.version != self._parts_version:
            self._read_parts(now)
            changed = True
        self._read_events(now)
        self._read_trails(now)
        if changed:
            for camera in self._cameras.values():
                camera.due = True
        for camera in self._cameras.values():
            if camera.due and now - camera.at >= SLOW_PERIOD:
                self._take_picture(camera, now)
        if now - self._slow_at >= SLOW_PERIOD or now < self._slow_at:
            self._slow_at = now
            self._read_metrics(view, now)
        self._read_scans(now)
        return changed

    def _read_robots(self, view: CellView, now: int) -> bool:
        last, self._last_view = self._last_view, view.robots
        changed = {name for name, each in view.robots.items() if last.get(name) != each}
        contacts = list(view.contacts)
        at = m.time_of(now)
        for name, topics in self._robots.items():
            robot_view = view.robots.get(name)
            if robot_view is not None and name in changed:
                self._read_robot(topics, robot_view, now)
            self._read_state(topics, robot_view, now)
        if changed or contacts != self._contacts:
            self._contacts = contacts
            self._put("/understudy/view", CellView, view, now, native=True)
            if self.frames:
                self._put("/tf", m.FrameTransforms, self._transforms(view, at), now)
            if self._together and not changed.isdisjoint(self._together):
                poses = [pose_message(view.robots[name].tcp) for name in self._together]
                value = m.PosesInFrame(at, WORLD, poses)
                self._put("/mobile_robots/poses", m.PosesInFrame, value, now)
        return bool(changed)

    def _transforms(self, view: CellView, at: m.Time) -> m.FrameTransforms:
        found = [
            each
            for name, frames in self.frames.items()
            if name in view.robots
            for each in frames.transforms(view.robots[name], at)
        ]
        for camera in self._cameras.values():
            parent = f"{camera.robot}/flange" if camera.model.on_flange else WORLD
            pose = pose_of_rows(camera.model.at.reshape(-1).tolist())
            frame = _camera_frame(camera)
            found.append(m.FrameTransform(at, parent, frame, pose.position, pose.orientation))
        return m.FrameTransforms(found)

    def _read_robot(self, topics: _RobotTopics, view: RobotView, now: int) -> None:
        name, at = topics.robot.name, m.time_of(now)
        topics.view = view
        if view.q:
            side = topics.robot.side
            own = now if side is topics.robot.simulated else side.time.now()
            reading = side.actions.axis_reading(own)
            speeds = reading.velocities or [None] * len(view.q)
            efforts = reading.torques or [None] * len(view.q)
            names: Any = topics.joints
            if len(names) != len(view.q):
                names = [f"joint_{n}" for n in range(1, len(view.q) + 1)]
            joints = list(map(m.JointState, names, view.q, speeds, efforts))
            self._put(f"/{name}/joint_states", m.JointStates, m.JointStates(at, joints), now)
        topic = "pose" if name in self._together else "tool_pose"
        value = m.PoseInFrame(at, WORLD, pose_message(view.tcp))
        self._put(f"/{name}/{topic}", m.PoseInFrame, value, now)

    def _read_state(self, topics: _RobotTopics, view: RobotView | None, now: int) -> None:
        robot, name = topics.robot, topics.robot.name
        side = robot.side
        own = now if side is robot.simulated else side.time.now()
        how = side.actions.condition(own)
        line = view.line if view else how.line
        tool, arc = (view.tool, view.arc) if view else (0, False)
        speed = 0.0
        if how.moving:
            speed = side.actions.axis_reading(own).speed or 0.0
        error = side.in_file(how.error)
        state = (how.state, how.moving, how.enabled, error, tool, line, arc, speed)
        if state != topics.state:
            topics.state = state
            value = m.RobotState(m.time_of(now), *state)
            self._put(f"/{name}/state", m.RobotState, value, now)
        if topics.program is not None:
            self._read_program(topics, topics.program, now)
        if topics.board is not None:
            pins = view.io if view else None
            if pins != topics.pins or now - self._slow_at >= SLOW_PERIOD:
                topics.pins = pins
                self._read_pins(robot, topics.board, now)

    def _read_program(self, topics: _RobotTopics, program: ProgramControl, now: int) -> None:
        reading = program.reading(now)
        line = (reading.name, reading.state, reading.line, reading.checksum)
        if line == topics.line:
            return
        topics.line = line
        if topics.lines[0] != reading.checksum:
            topics.lines = reading.checksum, program.text.splitlines()
        texts = topics.lines[1]
        text = texts[reading.line - 1] if 0 < reading.line <= len(texts) else ""
        rest = reading.name, reading.state, reading.line, text[:LONGEST_TEXT], reading.error
        value = m.ProgramLine(m.time_of(now), *rest)
        self._put(f"/{topics.robot.name}/program", m.ProgramLine, value, now)

    def _read_pins(self, robot: Robot, board: VirtualIO, now: int) -> None:
        found = pinboard(robot, board, now)
        inputs, outputs = (
            [m.DigitalPin(pin["name"], pin["value"]) for pin in found[f"digital_{way}"]]
            for way in ("inputs", "outputs")
        )
        analog_inputs, analog_outputs = (
            [m.AnalogPin(pin["name"], pin["value"]) for pin in found[f"analog_{way}"]]
            for way in ("inputs", "outputs")
        )
        rows = inputs, outputs, analog_inputs, analog_outputs
        topic = f"/{robot.name}/io"
        if self._values.get(topic) != rows:
            self._values[topic] = rows
            self._put(topic, m.Pins, m.Pins(m.time_of(now), *rows), now)

    def _read_panel(self, name: str, now: int) -> bool:
        component = self._panels[name]
        values: dict[str, Any] = {}
        faults: Sequence[str] = ()
        if isinstance(component, HasPanel):
            values = {row.label: row.value for row in component.panel(now)}
            faults = component.active_faults()
        if isinstance(component, Plotted):
            values |= {plot.name: plot.value(now) for plot in component.plots()}
        topic = f"/{name.replace('.', '/')}"
        topic += "" if "." in name else "/panel"
        if self._values.get(topic) == (values, faults):
            return False
        self._values[topic] = values, faults
        if topic not in self.channels:
            schema = m.schema_of_device(values)
            self.channels[topic] = Channel(topic, m.schema_name(m.DeviceState), schema)
        self._put(topic, m.DeviceState, m.DeviceState(m.time_of(now), values, faults), now)
        return True

    def _read_parts(self, now: int) -> None:
        assert self._parts is not None
        self._parts_version = self._parts.version
        found = part_rows(self._parts, now)
        self._put("/understudy/parts", dict, found, now, native=True)
        entities = list(workpiece_entities(found["parts"], self.frames, m.time_of(now)))
        self._put_scene("/scene/workpieces", entities, now)

    def _read_events(self, now: int) -> None:
        while (found := self._source.log.since(self._events_seen))["events"]:
            for event in found["events"]:
                self._put_event(event, now)
            self._events_seen = found["last"]

    def _put_event(self, event: LogEvent, now: int) -> None:
        at = round(event.time_s * NS_PER_SECOND)
        stamp = m.time_of(at)
        level = LEVELS.get(event.kind, m.INFO)
        name = f"{event.robot}.{event.kind}" if event.robot else event.kind
        row: Any = m.Log(stamp, level, event.text, name)  # type: ignore[arg-type]
        self._put("/log", m.Log, row, at, is_state=False)
        topic = {"alarm": "/alarms", "fault": "/alarms", "collision": "/violations"}.get(event.kind)
        if topic:
            rest = event.kind, event.robot, event.text, event.code, event.what_to_do
            row = m.Happening(stamp, event.number, *rest)
            self._put(topic, m.Happening, row, at, is_state=False)

    def _read_trails(self, now: int) -> None:
        if now - self._slow_at < SLOW_PERIOD or not self._trails:
            return
        changed = False
        for name, component in self._trails.items():
            count, points, version = component.trail_since(self._known.get(name, 0))
            before = self._known.get(name, (0, -1))
            if (count + len(points), version) != before:
                kept = self._trail_points.get(name, []) if count else []
                kept = [*kept[:count], *points]
                self._trail_points[name] = kept
                self._known[name] = len(kept), version
                changed = True
        if changed:
            at = m.time_of(now)
            entities = [_trail(name, p, at) for name, p in self._trail_points.items() if len(p) > 1]
            self._put_scene("/scene/trails", entities, now)

    def _read_metrics(self, view: CellView, now: int) -> None:
        engine = self._source.cell.components["engine"]
        assert isinstance(engine, SimulationEngine)
        status = engine.status(now)
        counts = status.metrics
        shown = (
            str(status.state),
            0.0 if isinstance(view.rate, str) else view.rate,
            view.rate if isinstance(view.rate, str) else "",
            counts.gcode_executed,
            counts.collisions_detected,
            round(counts.total_distance_mm, 3),
        )
        if self._values.get("/metrics") != shown:
            self._values["/metrics"] = shown
            self._put("/metrics", m.Metrics, m.Metrics(m.time_of(now), *shown), now)

    def _read_scans(self, now: int) -> None:
        names = self._together
        if self._lasers is None or not names:
            return
        period = SLOW_PERIOD * max(1, -(-len(names) // SCANS_PER_SECOND))
        if 0 <= now - self._scans_at < period:
            return
        self._scans_at = now
        at = m.time_of(now)
        for name in names:
            for scan in self._lasers.scans(name):
                ranges = [round(far, 3) if far < 1e9 else 0.0 for far in scan.ranges]
                topic = f"/{name}/scan/{scan.name}"
                if self._values.get(topic) != ranges:
                    self._values[topic] = ranges
                    x, y, yaw = scan.place
                    pose = pose_message((x, y, 0.0, 0.0, 0.0, yaw))
                    rest = pose, scan.start, scan.end, ranges
                    value = m.LaserScan(at, f"{name}/base", *rest)
                    self._put(topic, m.LaserScan, value, now)

    # ── the scene ──

    def _key_of_scene(self) -> Any:
        """Another value after each change of the geometry."""
        components = self._source.cell.components
        environment: Any = components["environment"]
        held = tuple(
            thing.name
            for component in components.values()
            if isinstance(component, HoldsObjects)
            for thing in component.held()
        )
        now = self._source.cell.now
        tools = tuple(each.robot.model.tool(now) for each in self._robots.values())
        return environment.environment, held, tools

    def _scene_came(self, key: Any, scene: Any) -> None:
        self._scene_asked = False
        self._scene_key = key
        if isinstance(scene, Refused) or not self._listeners:
            return
        now = self._source.cell.now
        at, robots = m.time_of(now), scene["robots"]
        self.frames = {name: RobotFrames(name, facts) for name, facts in robots.items()}
        for name, topics in self._robots.items():
            facts = robots.get(name, {"joints": ()})
            topics.joints = [each["name"] for each in facts["joints"] if each["type"] != "fixed"]
        self._put("/understudy/scene", dict, scene, now, native=True)
        self._put_scene("/scene/robots", list(robot_entities(robots, self.frames, at)), now)
        around = list(environment_entities(scene["environment"], at))
        self._put_scene("/scene/environment", around, now)
        self._parts_version = 0  # held parts follow the flange of a robot
        self._last_view = {}
        self.due = min(self.due, now)

    def _put_scene(self, topic: str, entities: list[m.SceneEntity], now: int) -> None:
        """All of a topic: what is not among the entities is deleted."""
        deletions = [m.SceneEntityDeletion(m.time_of(now), 1, "")]
        self._put(topic, m.SceneUpdate, m.SceneUpdate(deletions, entities), now)

    # ── cameras and vision ──

    def _take_picture(self, camera: _Camera, now: int) -> None:
        make = camera.component.preview(now, PICTURE_WIDTH, depth=False)
        camera.at, camera.due = now, False
        if isinstance(make, Refused):
            return
        at, frame = m.time_of(now), _camera_frame(camera)
        lens = camera.model.lens
        height = round(lens.height * PICTURE_WIDTH / lens.width)
        lens = resized(lens, PICTURE_WIDTH, height)  # that of the small picture
        topic = f"/{camera.robot}/camera"
        self._put(f"{topic}/calibration", m.CameraCalibration, _calibration(lens, frame, at), now)
        value = lambda: _image(make, frame, at)  # noqa: E731
        self._put(f"{topic}/image", m.CompressedImage, value, now)

    def _follow_finder(self, robot: str, finder: ObjectFinder) -> None:
        def answered(_: int, result: FoundObjects | Refused, now: int) -> None:
            if self._listeners:
                self._seen(robot, result, now)

        finder.on_result(answered)

    def _seen(self, robot: str, result: FoundObjects | Refused, now: int) -> None:
        camera = next((c for c in self._cameras.values() if c.robot == robot), None)
        frame = f"{robot}/camera" if camera is None else _camera_frame(camera)
        at, topic = m.time_of(now), f"/{robot}/detections"
        if isinstance(result, Refused):
            value = m.Detections(at, frame, (), result.reason)
            self._put(topic, m.Detections, value, now, is_state=False)
            return
        rows = [
            m.Detection(o.id, o.class_name, o.confidence, pose_message(o.pose), o.bbox)
            for o in result.objects
        ]
        self._put(topic, m.Detections, m.Detections(at, frame, rows), now, is_state=False)
        if camera is not None:
            self._take_picture(camera, now)
            drawn = _annotations(result.objects, camera.model.lens, at)
            self._put(f"/{robot}/camera/annotations", m.ImageAnnotations, drawn, now)

    # ── sending ──

    def _channel(
        self, topic: str, kind: type, *, is_state: bool = True, native: bool = False
    ) -> Channel:
        if topic not in self.channels:
            schema = b'{"type":"object"}' if native else m.schema_of(kind)
            name = f"{m.OWN}.{topic.rpartition('/')[2]}" if native else m.schema_name(kind)
            self.channels[topic] = Channel(topic, name, schema, is_state, native)
        return self.channels[topic]

    def _put(
        self,
        topic: str,
        kind: type,
        value: Any,
        at: int,
        *,
        is_state: bool = True,
        native: bool = False,
    ) -> None:
        channel = self._channel(topic, kind, is_state=is_state, native=native)
        message = Message(channel, at, value)
        if is_state:
            self.latest[topic] = message
        self._send(message)

    def _send(self, message: Message) -> None:
        for listener in self._listeners:
            listener(message)


# ── values ──────────────────────────────────────────────────────────────────────────────────────


def _topics_of(robot: Robot, components: Mapping[str, Any]) -> _RobotTopics:
    io = getattr(robot.simulated.controller, "io", None)
    program: Any = components.get(f"{robot.name}.program")
    board = io if isinstance(io, VirtualIO) else None
    chain = robot.model.chain
    joints = [axis.name for axis in robot.model.axes] if chain is None else list(chain.names)
    return _RobotTopics(robot, joints, board=board, program=program)


def _cameras(components: Mapping[str, Any]) -> Iterator[tuple[str, _Camera]]:
    for name, component in components.items():
        if isinstance(component, ShowsPicture):
            robot = name.partition(".")[0]
            models = (
                getattr(each, "model", None)
                for other, each in components.items()
                if other.partition(".")[0] == robot
            )
            model = next((each for each in models if isinstance(each, CameraModel)), CameraModel())
            yield name, _Camera(robot, component, model)


def _camera_frame(camera: _Camera) -> str:
    return f"{camera.robot}/camera"


def _calibration(lens: Lens, frame: str, at: m.Time) -> m.CameraCalibration:
    k = lens.matrix.reshape(-1).tolist()
    p = [*k[0:3], 0.0, *k[3:6], 0.0, *k[6:9], 0.0]
    turn = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    size = lens.width, lens.height
    return m.CameraCalibration(at, frame, *size, "plumb_bob", list(lens.distortion), k, turn, p)


def _image(make: Callable[[], Preview], frame: str, at: m.Time) -> m.CompressedImage:
    kind, data = coded(make().picture)
    return m.CompressedImage(at, frame, data, kind)


def _annotations(objects: Sequence[DetectedObject], lens: Lens, at: m.Time) -> m.ImageAnnotations:
    scale = PICTURE_WIDTH / lens.width
    boxes, texts = [], []
    for each in objects:
        x, y, w, h = (side * scale for side in each.bbox)
        corners = [m.Point2(x, y), m.Point2(x + w, y), m.Point2(x + w, y + h), m.Point2(x, y + h)]
        boxes.append(m.PointsAnnotation(at, 2, corners, BOX, (), CLEAR, 2.0))
        text = f"{each.class_name} {each.confidence:.2f}"
        texts.append(m.TextAnnotation(at, m.Point2(x, y), text, 12.0, LABEL, CLEAR))
    return m.ImageAnnotations((), boxes, texts)


def _trail(name: str, points: Sequence[tuple[float, float, float]], at: m.Time) -> m.SceneEntity:
    step = -(-len(points) // TRAIL_POINTS)
    shown = [m.Point3(*point) for point in points[::step]]
    line = m.LinePrimitive(0, m.Pose(), 0.004, False, shown, PART)
    return m.SceneEntity(at, WORLD, name, lines=[line])


def _wire_event(event: Event) -> m.WireEvent:
    text = escape(event.data[:LONGEST_TEXT])
    rest = event.endpoint, event.peer, event.kind, text, event.data, event.address or ()
    return m.WireEvent(m.time_of(event.at), *rest)


# ── live cells ──────────────────────────────────────────────────────────────────────────────────


class _LiveChannels(CellChannels):
    """The channels of a live cell: reads it while anything listens."""

    def __init__(self, own: OperatedCell) -> None:
        super().__init__(source_of_live(own), Budget(time.perf_counter))
        self._pump = own.pump
        self._notes, self._on_change = own.notes, own.table.on_change
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def listen(self, listener: Listener) -> Callable[[], None]:
        if not self.heard:
            self._pump.record(self)
            self._notes.append(self.passed)
            self._on_change.append(self.commanded)
            self._timer = self._loop.call_soon(self._look)  # type: ignore[assignment]
        stop = super().listen(listener)

        def end() -> None:
            stop()
            if not self.heard:
                self._pump.forget(self)
                self._notes.remove(self.passed)
                self._on_change.remove(self.commanded)
                if self._timer is not None:
                    self._timer.cancel()

        return end

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_SECONDS, self._look)
        self._pump.now()  # the cell catches up: it is read on its way
        self.look()


_of_cells: WeakKeyDictionary[OperatedCell, CellChannels] = WeakKeyDictionary()


def channels_of(live: Live | OperatedCell) -> CellChannels:
    """The channels of a live cell, shared by its doors."""
    own = live.operator if isinstance(live, Live) else live
    if own not in _of_cells:
        _of_cells[own] = _LiveChannels(own)
    return _of_cells[own]


def channels_on_virtual_time(config: CellConfig, cell: InProcessCell) -> CellChannels:
    """The channels of a cell on virtual time, which reads them while it advances."""
    timed: Any = cell.timed_cell
    channels = CellChannels(source_of(config, timed))
    cell.recorder, cell.on_event = channels, channels.passed
    return channels
