"""Grippers: two pneumatic fingers, a vacuum cup, or an electric servo."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from msgspec import Meta, Struct, structs

from understudy.devices.gripper.modbus import FAULTS as SERVO_FAULTS
from understudy.devices.gripper.modbus import ServoConfig
from understudy.errors import Refused
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    JOB_FAILS,
    STANDS,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Trial,
    active,
    start_job,
)
from understudy.ports.faults import Fault, Faults, Figure

if TYPE_CHECKING:
    from understudy.app.stand_in import StandIn
    from understudy.devices.gripper.controller import GripperController, GripperStandIn
    from understudy.ports.device import Mount
    from understudy.ports.io import PollsInputs

GripperType = Literal["PNEUMATIC_2FINGER", "PNEUMATIC_VACUUM", "ELECTRIC_SERVO"]
Milliseconds = Annotated[float, Meta(ge=0, le=600_000)]
TimeOut = Annotated[float, Meta(gt=0, le=600_000)]
Millimetres = Annotated[float, Meta(ge=0, le=1000)]
Pin = Annotated[int, Meta(ge=0, lt=32)]
Channel = Annotated[int, Meta(ge=0, lt=8)]
USES_WORKPIECES = True
WITH_JOBS = True
"""Its key can be in a file with the sections of jobs."""


# ── settings ──


class Pins(Struct, frozen=True, forbid_unknown_fields=True):
    """Pins by number: outputs `close` … `blow_off`, digital inputs `closed` … `vacuum_ok`, analog
    inputs `force` and `vacuum`."""

    close: Pin = 8
    open: Pin = 9
    vacuum_on: Pin = 10
    blow_off: Pin = 11
    closed: Pin = 8
    opened: Pin = 9
    part: Pin = 10
    vacuum_ok: Pin = 11
    force: Channel = 4
    vacuum: Channel = 5


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """The analog sensors: 10 V are 100 N and -100 kPa. `*_zero_v`: the voltage of 0 N and 0 kPa."""

    force_n_per_v: Annotated[float, Meta(gt=0, le=10_000)] = 10.0
    force_zero_v: float = 0.0
    vacuum_kpa_per_v: Annotated[float, Meta(lt=0, ge=-1000)] = -10.0
    vacuum_zero_v: float = 0.0

    def force_n(self, volts: float) -> float:
        return (volts - self.force_zero_v) * self.force_n_per_v

    def force_v(self, newtons: float) -> float:
        return newtons / self.force_n_per_v + self.force_zero_v

    def vacuum_kpa(self, volts: float) -> float:
        return (volts - self.vacuum_zero_v) * self.vacuum_kpa_per_v + 0.0

    def vacuum_v(self, kpa: float) -> float:
        return kpa / self.vacuum_kpa_per_v + self.vacuum_zero_v


class Fingers(Struct, frozen=True, forbid_unknown_fields=True):
    """The simulated two-finger gripper. `axis`: the axis of the tool along which the fingers move.

    `pad_mm`: width and height of a finger pad; the tool point is in the middle between the pads.
    `sensor_mm`: an end sensor is on within this distance of its end.
    """

    open_mm: Annotated[float, Meta(gt=0, le=1000)] = 80.0
    closed_mm: Millimetres = 0.0
    axis: Literal["x", "y"] = "y"
    pad_mm: tuple[float, float] = (20.0, 20.0)
    finger_speed_mm_s: Annotated[float, Meta(gt=0, le=10_000)] = 400.0
    valve_delay_ms: Milliseconds = 10.0
    sensor_mm: Annotated[float, Meta(gt=0, le=10)] = 0.5
    part_sensor_delay_ms: Milliseconds = 5.0
    pressure_bar: Annotated[float, Meta(gt=0, le=20)] = 6.0
    piston_mm: Annotated[float, Meta(gt=0, le=500)] = 12.0
    force_rise_ms: TimeOut = 15.0
    pressure_decay_s: Annotated[float, Meta(gt=0, le=3600)] = 0.5
    friction: Annotated[float, Meta(gt=0, le=5)] = 0.5


class Cup(Struct, frozen=True, forbid_unknown_fields=True):
    """The simulated vacuum cup at the tool point. `reach_mm`: a face within this distance, and no
    steeper than `tilt_deg`, seals it. `open_kpa`: the vacuum that the ejector reaches without a
    part, `sealed_kpa` with one. Times: evacuation, the slow leak of a closed valve without air,
    venting without and with blow-off, each to 63 %."""

    diameter_mm: Annotated[float, Meta(gt=0, le=1000)] = 30.0
    reach_mm: Annotated[float, Meta(gt=0, le=50)] = 3.0
    tilt_deg: Annotated[float, Meta(gt=0, le=45)] = 5.0
    valve_delay_ms: Milliseconds = 10.0
    sealed_kpa: Annotated[float, Meta(lt=0, ge=-101)] = -85.0
    open_kpa: Annotated[float, Meta(le=0, ge=-101)] = -8.0
    evacuation_ms: TimeOut = 80.0
    hold_s: Annotated[float, Meta(gt=0, le=3600)] = 20.0
    vent_ms: TimeOut = 200.0
    blow_ms: TimeOut = 10.0
    friction: Annotated[float, Meta(gt=0, le=5)] = 0.5


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """GripperConfig of the design document, with pins, calibration and the simulated hardware.

    `grip_force_n`, `grip_speed_mm_s`: of an electric servo. `vacuum_hysteresis_kpa`: a part that is
    held counts as lost when the vacuum is weaker than the threshold by this much.
    """

    type: GripperType = "PNEUMATIC_2FINGER"
    close_timeout_ms: TimeOut = 500.0
    open_timeout_ms: TimeOut = 500.0
    settle_time_ms: Milliseconds = 50.0
    vacuum_threshold_kpa: Annotated[float, Meta(lt=0, ge=-101)] = -60.0
    vacuum_hysteresis_kpa: Annotated[float, Meta(ge=0, le=100)] = 10.0
    vacuum_timeout_ms: TimeOut = 1000.0
    blowoff_time_ms: Milliseconds = 100.0
    grip_force_n: Annotated[float, Meta(gt=0, le=10_000)] = 50.0
    grip_speed_mm_s: Annotated[float, Meta(gt=0, le=10_000)] = 100.0
    pins: Pins = Pins()
    calibration: Calibration = Calibration()
    fingers: Fingers = Fingers()
    cup: Cup = Cup()
    servo: ServoConfig = ServoConfig()

    def simulated(self) -> "Config":
        return structs.replace(self, servo=structs.replace(self.servo, real=None))


# ── phases of the controller ──

Phase = Literal["Rest", "Closing", "Settling", "Holding", "Opening", "Clearing", "Failed"]
PHASES: tuple[Phase, ...] = get_args(Phase)
TRANSITIONS: Mapping[tuple[Phase, str], Phase] = {
    **{(phase, "grip"): "Closing" for phase in PHASES},
    **{(phase, "release"): "Opening" for phase in PHASES},
    ("Closing", "arrived"): "Settling",
    ("Closing", "failed"): "Failed",
    ("Settling", "held"): "Holding",
    ("Settling", "missed"): "Rest",
    ("Holding", "lost"): "Rest",
    ("Holding", "vacuum_off"): "Rest",
    ("Closing", "vacuum_off"): "Rest",
    ("Settling", "vacuum_off"): "Rest",
    ("Opening", "clear"): "Clearing",
    ("Opening", "failed"): "Failed",
    ("Clearing", "done"): "Rest",
    ("Clearing", "failed"): "Failed",
    ("Failed", "reset"): "Rest",
}
"""An event that has no row here changes nothing."""


# ── faults ──

LEVEL = {"value": Figure(1.0, 0.0, 1.0)}
PNEUMATIC_FAULTS: Faults = {
    "closed_sensor_stuck": Fault("brought", "GRIPPER_CLOSED keeps a level until reset", LEVEL),
    "opened_sensor_stuck": Fault("brought", "GRIPPER_OPENED keeps a level until reset", LEVEL),
    "part_sensor_stuck": Fault(
        "brought", "PART_DETECTED, or VACUUM_OK of a cup, keeps a level until reset", LEVEL
    ),
    "valve_stuck": Fault("brought", "the valve of the gripper does not switch until reset"),
    "air_lost": Fault("brought", "the gripper has no compressed air until reset"),
    "vacuum_leak": Fault(
        "brought",
        "the cup leaks until reset: a share of its vacuum is missing",
        {"share": Figure(0.5, 0.0, 1.0)},
    ),
    "slip": Fault("brought", "the held part slips out of the gripper"),
    "grip_miss": Fault("asked", "this attempt to grip does not get hold of the part"),
}
FAULTS: Faults = {**PNEUMATIC_FAULTS, **SERVO_FAULTS}


def build(name: str, config: Config, mount: "Mount") -> "GripperController":
    from understudy.devices.gripper.controller import build_gripper

    return build_gripper(name, config, mount)


def build_real(name: str, config: Config, pins: "PollsInputs | None") -> "GripperController":
    """The gripper of a REAL robot: valves on the pins of its controller, or a servo gripper."""
    from understudy.devices.gripper.controller import build_real_gripper

    return build_real_gripper(name, config, pins)


def for_tests(cell: "StandIn", name: str) -> "GripperStandIn":
    """The gripper of a cell in a test."""
    from understudy.devices.gripper.controller import GripperStandIn

    return GripperStandIn(cell, name)


# ── expected reactions to its faults: in a cycle of a job, and of the servo's driver ──

GRIPPED_S, CYCLE_S = 60.0, 30.0


def at_work(trial: Trial) -> None:
    """the job begins its first cycle"""
    ends: list[Refused | None] = []
    trial.notes["ends"] = ends
    trial.own("gripper").on_finished(lambda ticket, refused, now: ends.append(refused))
    start_job(trial)


def carrying(trial: Trial) -> None:
    """the job carries a part"""
    at_work(trial)
    gripper = trial.own("gripper")
    trial.run_until(lambda: gripper.has_part(trial.now), GRIPPED_S, "no part is gripped")
    trial.advance(1.0)


PART_GONE = Seen("no part is held", lambda t: not t.own("gripper").has_part(t.now), lasts=True)
MISSED_AND_GRIPPED = Seen(
    "a grip is missed, and a later one holds a part",
    lambda t: any(each is not None for each in t.notes["ends"]) and t.part.has_part(t.now),
)


def stuck(sensor: str, value: float) -> Reaction:
    return Reaction(
        carrying,
        (active(f"gripper fault: the {sensor} sensor is stuck"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
        parameters={"value": value},
    )


# ── servo grippers ──


def activated(trial: Trial) -> None:
    """the servo gripper is activated and open"""
    ends: list[Refused | None] = []
    trial.notes["ends"] = ends
    gripper = trial.own("gripper")
    gripper.on_finished(lambda ticket, refused, now: ends.append(refused))
    trial.run_until(lambda: gripper.is_ready(trial.now), 30.0, "the gripper is not ready")
    _command(trial, "start_release")
    trial.run_until(lambda: bool(ends), 30.0, "the gripper does not open")
    ends.clear()
    trial.notes["opening"] = gripper.opening(trial.now)


def closing(trial: Trial) -> None:
    """the fingers of a servo gripper close"""
    activated(trial)
    _command(trial, "start_grip")
    opening = trial.notes["opening"]
    trial.run_until(
        lambda: trial.part.opening(trial.now) < 0.8 * opening, 10.0, "the fingers do not close"
    )


def close(trial: Trial) -> None:
    """the gripper closes by a command"""
    _command(trial, "start_grip")


def _command(trial: Trial, name: str) -> None:
    refused = getattr(trial.own("gripper"), name)(trial.now)
    if isinstance(refused, Refused):
        raise NotPossibleError(refused.reason)


REFUSED = Seen("the command ends with a refusal", lambda t: any(t.notes["ends"]))
HALF_OPEN = Seen(
    "the fingers stand half open",
    lambda t: t.part.opening(t.now) > 0.1 * t.notes["opening"] and not t.part.busy(),
    lasts=True,
)
ENDS_WELL = Seen(
    "the command ends as without the fault: nothing to hold, after a repeated request",
    lambda t: len(t.notes["ends"]) == 1 and t.notes["ends"][0].reason.startswith("MISSED"),
)

REACTIONS: Reactions = {
    "finger_blocked": Reaction(closing, (HALF_OPEN,), within_s=5.0),
    "drive_fault": Reaction(
        closing, (active("servo gripper"), ENGINE_FAILED, REFUSED), within_s=5.0
    ),
    "registers_frozen": Reaction(
        activated,
        (active("servo gripper: the registers are frozen"), ENGINE_FAILED, REFUSED, STANDS),
        within_s=10.0,
        then=close,
    ),
    "cable_cut": Reaction(closing, (REFUSED,), within_s=10.0, parameters={"duration_s": 60.0}),
    "answer_lost": Reaction(activated, (ENDS_WELL,), within_s=10.0, then=close),
    "closed_sensor_stuck": stuck("closed", 1.0),
    "opened_sensor_stuck": stuck("opened", 0.0),
    "part_sensor_stuck": Reaction(
        carrying,
        (active("gripper fault"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
        parameters={"value": 1.0},
    ),
    "valve_stuck": Reaction(
        carrying,
        (active("gripper fault: the valve is stuck"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
    ),
    "air_lost": Reaction(
        carrying,
        (active("gripper fault: there is no compressed air"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
    ),
    "vacuum_leak": Reaction(
        carrying,
        (active("gripper fault: the cup leaks"), ENGINE_FAILED, JOB_FAILS, PART_GONE, STANDS),
        within_s=CYCLE_S,
        parameters={"share": 0.9},
    ),
    "slip": Reaction(carrying, (PART_GONE, JOB_FAILS, STANDS), within_s=5.0),
    "grip_miss": Reaction(at_work, (MISSED_AND_GRIPPED,), within_s=GRIPPED_S),
}
