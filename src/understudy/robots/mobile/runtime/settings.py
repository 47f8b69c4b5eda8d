"""The module Settings: what the backend wants of limits, outputs and safety, and what holds."""

from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec import UNSET, Struct

from understudy.errors import Refused
from understudy.ports import State
from understudy.robots.mobile.hardware_interface import MotorLimits, TimedHardware
from understudy.robots.mobile.runtime.body import RowBody
from understudy.robots.mobile.runtime.messages import (
    DesiredMotor,
    DesiredSafety,
    EffectiveMotor,
    EffectiveSafety,
    Received,
    SettingsDesired,
    SettingsReported,
)
from understudy.robots.mobile.runtime.modules import Occurrence, RobotOrders
from understudy.robots.mobile.runtime.table import Table, rows_of


class SavedSettings(Struct, forbid_unknown_fields=True):
    """`applied`: the correlation id of the settings.desired that holds."""

    applied: str | None


class Settings:
    """`modules.Module`. Limits are never above those of the robot's file."""

    def __init__(
        self, orders: RobotOrders, table: Table, row: int, body: RowBody, hardware: TimedHardware
    ) -> None:
        self._orders = orders
        self._table = table
        self._row = row
        self._body = body
        self._hardware = hardware
        points = table.files[row].io.digital_outputs
        self._outputs = {
            point.io_id: number for point, number in zip(points, table.outputs[row], strict=True)
        }
        self._applied: str | None = None

    def kinds(self) -> tuple[str, ...]:
        return ("settings.desired",)

    def handle(self, message: Received, now: int) -> None:
        desired: SettingsDesired = message.payload
        ignored = [
            *self._set_motors(desired.motors or {}, now),
            *self._set_outputs(desired.io or {}),
        ]
        if desired.safety is not None:
            self._set_safety(desired.safety)
        self._applied = message.cause
        self._table.bootstrapped[self._row] = True
        self._report(now, ignored)

    def advance(self, now: int) -> None: ...

    def next_wake(self) -> int | None:
        return None

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None: ...

    def occurred(self, what: Occurrence, now: int) -> None:
        if what == "connected":
            self._report(now, [])

    # ── inside ──

    def _set_motors(self, motors: dict[str, DesiredMotor], now: int) -> Iterator[str]:
        table = self._table
        for name, wanted in motors.items():
            place = self._body.motors.get(name)
            if place is None:
                yield f"motors.{name}: no such motor"
                continue
            if wanted.max_speed is not None:
                table.max_speed[place] = min(wanted.max_speed, table.file_speed[place])
            if wanted.max_acceleration is not None:
                most = table.file_acceleration[place]
                table.max_acceleration[place] = min(wanted.max_acceleration, most)
            if wanted.reset_requested:
                refused = self._hardware.motors.reset(int(table.motors[place]), now)
                if refused is not None:
                    yield f"motors.{name}.resetRequested: {refused.reason}"
        if motors:
            self.write_limits()

    def write_limits(self) -> None:
        """Gives the limits to the motors and to the body."""
        table, (first, end) = self._table, self._table.motor_spans[self._row]
        span = slice(int(first), int(end))
        limits = MotorLimits(
            table.max_speed[span], table.max_acceleration[span], table.deceleration[span]
        )
        self._hardware.motors.set_limits(table.motors[span], limits)
        table.update_limits([self._row])

    def _set_outputs(self, wanted: dict[str, bool]) -> Iterator[str]:
        for name, value in wanted.items():
            if name in self._outputs:
                rows = rows_of([self._outputs[name]])
                self._hardware.io.write_outputs(rows, np.array([value], dtype=np.bool_))
            else:
                yield f"io.{name}: no such output"

    def _set_safety(self, wanted: DesiredSafety) -> None:
        table, row = self._table, self._row
        if wanted.stop_on_obstacle is not None:
            table.stop_on_obstacle[row] = wanted.stop_on_obstacle
        if wanted.obstacle_stop_distance_meters is not None:
            table.stop_distance[row] = wanted.obstacle_stop_distance_meters
        if wanted.obstacle_warn_distance_meters is not None:
            table.warn_distance[row] = wanted.obstacle_warn_distance_meters
        table.warn_distance[row] = max(table.warn_distance[row], table.stop_distance[row])

    def _report(self, now: int, ignored: list[str]) -> None:
        table, row = self._table, self._row
        motors = {
            name: EffectiveMotor(float(table.max_speed[n]), float(table.max_acceleration[n]))
            for name, n in self._body.motors.items()
        }
        values = self._hardware.io.read_outputs(rows_of(list(self._outputs.values()))).tolist()
        safety = EffectiveSafety(
            bool(table.stop_on_obstacle[row]),
            float(table.stop_distance[row]),
            float(table.warn_distance[row]),
        )
        reported = SettingsReported(
            motors,
            dict(zip(self._outputs, values, strict=True)),
            UNSET if self._applied is None else self._applied,
            safety,
            ignored or UNSET,
        )
        self._orders.publish("settings.reported", reported, now, self._applied)

    # ── snapshot ──

    def save(self) -> State:
        return SavedSettings(self._applied)

    def load(self, state: State) -> None:
        self._applied = msgspec.convert(state, SavedSettings).applied
