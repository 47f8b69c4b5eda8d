"""A mobile robot as a component of the cell: its status, its faults, and how the engine stops it.

Its state is saved with the component `fleet`; here is only which row it is.
"""

from collections.abc import Callable, Mapping
from math import hypot
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Epoch
from understudy.ports.faults import Faults
from understudy.ports.hmi import RobotView
from understudy.ports.operation import AxisReading, Condition, Frame, RobotModel, VehicleBody
from understudy.ports.refusals import ESTOP
from understudy.robots.mobile.config.layout import Layout, centre_ahead
from understudy.robots.mobile.config.profile import ProfilePose
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.faults import FAULTS
from understudy.robots.mobile.hardware_interface import Rows
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.robots.mobile.graph import DriverGraph
    from understudy.robots.mobile.runtime.fleet import Fleet
    from understudy.robots.mobile.vda5050.face import Config as MasterConfig
    from understudy.robots.mobile.vda5050.master import MasterControl

FAULT_CODE = "SIM_FAULT"
NO_HARDWARE = Refused("this robot is REAL: its hardware is not simulated")
EMERGENCY = Refused("Robot in emergency stop state", ESTOP)
ACTIONS: Mapping[str, Callable[[Any, int, str], Refused | None]] = {
    "emergency_stop": lambda mock, row, target: mock.press_estop(row, pressed=True),
    "emergency_release": lambda mock, row, target: mock.press_estop(row, pressed=False),
    "drive_fault": lambda mock, row, target: mock.inject_fault(row, target, FAULT_CODE),
    "motor_fault": lambda mock, row, target: mock.inject_fault(row, target, FAULT_CODE),
    "device_disconnected": lambda mock, row, target: mock.inject_fault(row, target, FAULT_CODE),
    "input_on": lambda mock, row, target: mock.set_input(row, target.removeprefix("io:"), True),
    "input_off": lambda mock, row, target: mock.set_input(row, target.removeprefix("io:"), False),
    "input_released": lambda mock, row, target: mock.set_input(
        row, target.removeprefix("io:"), None
    ),
    "device_connected": lambda mock, row, target: mock.faults.repair(row, target),
}
FULL = 100.0


class Status(Struct, frozen=True):
    """Metres, radians and seconds. `pose`: where the robot believes to be; `true_pose`: where it
    is."""

    state: str
    pose: tuple[float, float, float]
    true_pose: tuple[float, float, float] | None
    velocity: tuple[float, float]
    battery_percent: float
    localization: str
    stop_reason: str | None
    estop_pressed: bool
    command: str | None
    faults: tuple[str, ...]


def body_of(file: RobotFile) -> VehicleBody:
    size = file.dimensions
    lengths = (size.length_mm * MM, size.width_mm * MM, size.height_mm * MM)
    return VehicleBody(*lengths, centre_ahead(file))


class MobileRobot:
    """`Component`, `Injectable`, `Supervised` and `Viewed`. ``row``: of the robot in the layout;
    ``estops``: of its emergency stop inputs."""

    def __init__(
        self, layout: Layout, row: int, fleet: "Fleet", graph: "DriverGraph", estops: Rows
    ) -> None:
        self._file = layout.robots[row]
        self._row = row
        self._fleet = fleet
        self._mock = graph.mock if self._file.runtime.mode == "MOCK" else None
        self._io = graph.io
        self._estops = estops
        io = self._file.io
        self._known = {
            "motor": [motor.motor_id for motor in self._file.motors],
            "device": [device.device_id for device in io.devices],
            "io": [
                *(point.io_id for point in io.digital_inputs),
                *(point.io_id for point in io.digital_outputs),
            ],
        }

    @property
    def start(self) -> tuple[float, float, float]:
        """The pose at the time 0."""
        profile = self._file.runtime.simulation_profile
        pose = profile.initial_state.pose if profile else ProfilePose()
        return pose.x, pose.y, pose.yaw

    @property
    def body(self) -> VehicleBody:
        return body_of(self._file)

    # ── part ──

    def status(self, now: int) -> Status:
        robot = self._fleet.robot(self._row)
        reports, active = robot.reports, robot.executor.active
        pose = reports.pose
        return Status(
            state=reports.status,
            pose=(pose.x, pose.y, pose.yaw),
            true_pose=self._mock.pose(self._row) if self._mock else None,
            velocity=reports.velocity,
            battery_percent=reports.battery(),
            localization=reports.localization(),
            stop_reason=robot.stop_reason,
            estop_pressed=self._estop_pressed(),
            command=active.command_type if active else None,
            faults=self._faults(),
        )

    def _faults(self) -> tuple[str, ...]:
        _, faults = self._fleet.robot(self._row).reports.faults()
        return tuple(f"{fault.code}: {fault.message}" for fault in faults)

    def _estop_pressed(self) -> bool:
        """Whether the button is pressed now; the runtime reads it at the next tick."""
        return bool(self._io.read_inputs(self._estops).any())

    def save(self) -> None:
        return None

    def load(self, state: Any) -> None:
        return None

    def busy(self) -> bool:
        return self._fleet.robot(self._row).executor.active is not None

    def view(self, now: int) -> RobotView:
        """The robot at its true pose, if that is known."""
        reports = self._fleet.robot(self._row).reports
        pose = reports.pose
        x, y, yaw = self._mock.pose(self._row) if self._mock else (pose.x, pose.y, pose.yaw)
        return RobotView((), (x, y, 0.0, 0.0, 0.0, yaw), reports.status, self.moving())

    def axis_reading(self, now: int) -> AxisReading:
        """True pose and speed; of a robot that moves as they were at its last tick."""
        reports = self._fleet.robot(self._row).reports
        forward, turning = reports.velocity
        sideways = 0.0
        if self._mock is not None:
            forward, sideways, turning = self._mock.velocity(self._row)
        at = self._fleet.last_tick(self._row) if forward or sideways or turning else None
        place = Pose(*self.view(now).tcp)
        return AxisReading((), (), (), place, speed=hypot(forward, sideways), at=at)

    def moving(self) -> bool:
        return self._fleet.robot(self._row).reports.is_moving

    def task_count(self) -> int:
        return len(self._fleet.robot(self._row).tasks.readings())

    @property
    def state(self) -> str:
        return self._fleet.robot(self._row).reports.status

    def under_master(
        self,
        config: "MasterConfig",
        serial: str,
        epoch: Epoch,
        log: Callable[[str], None] = lambda line: None,
    ) -> "MasterControl":
        """Puts the robot under a VDA 5050 master control; called once, while the cell is built.
        ``epoch``: nanoseconds since 1970 at the time 0."""
        from understudy.robots.mobile.vda5050.master import control_of

        return control_of(self._fleet, self._row, config, serial, epoch, log)

    # ── faults ──

    def faults(self) -> Faults:
        return FAULTS

    def fault_pin(self, fault: str, name: str) -> int | Refused:
        """`NamesPins`: the number of a motor or device by its id."""
        known = next(self._known[kind] for kind in FAULTS[fault].figures)
        if name in known:
            return known.index(name)
        return Refused(f"the robot has no {name}; it has: {', '.join(known) or 'none'}")

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if self._mock is None:
            return NO_HARDWARE
        target = self._target(parameters)
        if isinstance(target, Refused):
            return target
        self._mock.begin(now)  # it may have rested until now
        refused: Refused | None = ACTIONS[fault](self._mock, self._row, target)
        self._fleet.poke(self._row, now)
        return refused

    def _target(self, parameters: Mapping[str, float]) -> str | Refused:
        """What a fault acts on, in the words of a profile; without parameters the drive."""
        for kind, number in parameters.items():
            known = self._known[kind]
            if not 0 <= number < len(known):
                return Refused(f"the robot has no {kind} {number:g}; it has {len(known)}")
            return f"{kind}:{known[int(number)]}"
        return "drive"

    # ── the engine ──

    def inhibit_motion(self, now: int) -> None:
        self._fleet.stop(self._row, now)
        self._fleet.hold(self._row, held=True, now=now)

    def permit_motion(self, now: int) -> None:
        self._fleet.hold(self._row, held=False, now=now)

    def stop(self, now: int) -> None:
        """Ends the running command and drops those that wait, as the command STOP does."""
        self._fleet.stop(self._row, now)

    def reset(self, now: int) -> Refused | None:
        """Releases the emergency stop, repairs motors, inputs and sensors, and charges an empty
        battery."""
        if self._mock is None:
            return NO_HARDWARE
        self._mock.begin(now)  # it may have rested until now
        if self.status(now).battery_percent <= 0.0:
            self._mock.set_battery(self._row, FULL)
        self._mock.press_estop(self._row, pressed=False)
        for kind, names in self._known.items():
            for name in names:
                self._mock.faults.repair(self._row, f"{kind}:{name}")
        self._fleet.poke(self._row, now)
        return None

    def fault(self, now: int) -> Refused | None:
        """Not an empty battery: a cell that only waits is no faulty cell."""
        if self._estop_pressed():
            return EMERGENCY
        broken = self._faults()
        if not broken or self._fleet.robot(self._row).reports.battery() <= 0.0:
            return None
        return Refused(broken[0])


# ── what an operator can do ───────────────────────────────────────────────────────────────────────


class MobileActions:
    """`OperatorActions` of a mobile robot; it is commanded over NATS."""

    frames: tuple[Frame, ...] = ()

    def __init__(self, robot: MobileRobot) -> None:
        self._robot = robot

    def condition(self, now: int) -> Condition:
        fault = self._robot.fault(now)
        error, code = (fault.reason, fault.code) if fault else ("", 0)
        return Condition(
            state=self._robot.state,
            moving=self._robot.moving(),
            error=error,
            code=code,
            waiting_tasks=self._robot.task_count() if fault else 0,
        )

    def axis_reading(self, now: int) -> AxisReading:
        return self._robot.axis_reading(now)

    def stop(self, now: int) -> None:
        self._robot.stop(now)

    def emergency_stop(self, now: int) -> Refused | None:
        return self._robot.inject("emergency_stop", {}, now)

    def reset(self, now: int) -> Refused | None:
        return self._robot.reset(now)


def model_of(robot: MobileRobot) -> RobotModel:
    """The foot is where the robot starts: pages show its name there."""
    x, y, yaw = robot.start
    base = matrix(Pose(x, y, 0.0, 0.0, 0.0, yaw))
    return RobotModel(base=tuple(base.reshape(-1).tolist()), vehicle=robot.body)
