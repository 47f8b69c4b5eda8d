"""SIMULATION and REAL, with a second cell as the real robot, over sockets and on wall time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.operator.real_pair import Operator, run
from tests.operator.real_pair import alive as alive_at

from understudy.app.live import Live
from understudy.errors import ConfigError
from understudy.operator.run_modes import DEAD_MAN_SECONDS
from understudy.wire.dial import Destination

TEXT, ARM = "text_robot", "default"
FACE = {TEXT: "bench.text_tcp", ARM: "g60.grblhal"}
NAME = {TEXT: "bench", ARM: "g60"}


@contextlib.asynccontextmanager
async def alive(cell: str, *, at: int = 0, **options: Any) -> AsyncIterator[Live]:
    """A live cell; ``at``: the port of the REAL robot."""
    place = Destination("127.0.0.1", at) if at else None
    async with alive_at(cell, NAME[cell], at=place, **options) as live:
        yield live


@contextlib.asynccontextmanager
async def pair(cell: str, *, mode: str = "real", real: bool = True) -> AsyncIterator[Any]:
    """The cell that is the real robot, and the operator of the other cell."""
    async with alive(cell) as there:
        port = int(there.endpoints[FACE[cell]].rsplit(":", 1)[1])
        async with alive(cell, at=port, real=real) as here:
            operator = Operator(here, NAME[cell])
            if mode == "real":
                assert operator.on("set_mode", mode="real", check=True)["mode"] == "SIMULATION"
                assert operator.on("set_mode", mode="real")["mode"] == "REAL"
                await operator.connected()
            yield Operator(there, NAME[cell]), operator


# ── who may ──


def test_commands_of_simulated_devices_are_refused_while_their_robot_is_real() -> None:
    async def test() -> None:
        values = {"current_a": 180.0, "voltage_v": 24.0, "wire_speed_m_min": 7.5}
        async with pair(ARM) as (_, operator):
            said = operator.refusal("set_weld_parameters", **values)
            assert said == (
                "g60 is REAL and g60.welder is simulated: the real device would not follow"
            )
            operator.on("set_mode", mode="simulation")
            assert operator.do("set_weld_parameters", **values)["name"] == "g60.welder"

    run(test)


def test_real_must_be_allowed_on_the_command_line() -> None:
    async def test() -> None:
        async with pair(TEXT, mode="simulation", real=False) as (_, operator):
            for check in (True, False):
                given = {"robot": "bench", "mode": "real", "check": check}
                assert "without --real" in operator.refusal("set_mode", **given)
        with pytest.raises(ConfigError, match="--real on the command line"):
            async with alive(TEXT, at=1, controller="real"):
                pass
        with pytest.raises(ConfigError, match="no robot says where"):
            async with alive(TEXT, controller="real", real=True):
                pass

    run(test)


def test_a_robot_without_an_address_stays_simulated() -> None:
    async def test() -> None:
        async with alive(TEXT, real=True) as live:
            operator = Operator(live, "bench")
            assert "does not say where" in operator.refusal("set_mode", robot="bench", mode="real")

    run(test)


@pytest.mark.parametrize(
    ("there", "allowed", "mode", "says"),
    [
        (True, False, "SIMULATION", "answers; --real would use it: simulated"),
        (True, True, "REAL", "REAL at tcp://127.0.0.1"),
        (False, True, "SIMULATION", "nothing answers at tcp://127.0.0.1"),
    ],
)
def test_auto_reports_what_it_finds(there: bool, allowed: bool, mode: str, says: str) -> None:
    async def test() -> None:
        async with alive(TEXT) as other:
            port = int(other.endpoints[FACE[TEXT]].rsplit(":", 1)[1])
            if not there:
                await other.stop()
            async with alive(TEXT, at=port, controller="auto", real=allowed) as live:
                operator = Operator(live, "bench")
                assert operator.facts["mode"] == mode
                reported = next(e for e in operator.do("events")["events"] if e.kind == "mode")
                assert says in reported.text

    run(test)


# ── the text robot ──


def test_commands_act_on_the_real_robot_and_not_on_the_simulated_one() -> None:
    async def test() -> None:
        async with pair(TEXT) as (there, operator):
            operator.on("move_to", pose_mm_deg=[11, 0, 100, 0, 0, 0])
            await there.until(lambda facts: facts["moving"])
            await operator.at_rest()
            assert there.on("teach_point", name="p")["points"][0]["pose_mm_deg"][0] == 11.0
            operator.on("emergency_stop")
            await there.until(lambda facts: facts["state"] == "EmergencyStopped")
            operator.on("reset")
            await operator.until(lambda facts: not facts["error"])
            assert operator.on("set_mode", mode="simulation")["mode"] == "SIMULATION"
            assert operator.on("teach_point", name="p")["points"][0]["pose_mm_deg"][0] == 0.0

    run(test)


def test_the_faces_of_the_simulated_sibling_are_closed_while_the_robot_is_real() -> None:
    """A client would move a simulated robot that no page shows."""

    async def test() -> None:
        async with pair(TEXT, mode="simulation") as (_, operator):
            port = int(operator.live.endpoints[FACE[TEXT]].rsplit(":", 1)[1])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET_STATUS\n")
            assert (await reader.readline()).startswith(b"OK Idle")
            assert operator.facts["faces"] == "open"
            operator.on("set_mode", mode="real")
            await operator.connected()
            assert await reader.read() == b"", "hung up on"
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"MOVE_ABS 1,2,3,0,0,0\n")
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b"", "turned away"
            writer.close()
            assert operator.facts["faces"] == "closed while it is REAL"
            operator.on("set_mode", mode="simulation")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET_STATUS\n")
            assert (await reader.readline()).startswith(b"OK Idle")
            writer.close()

    run(test)


def test_stop_and_reset_of_the_cell_act_on_a_real_robot() -> None:
    async def test() -> None:
        async with pair(TEXT) as (there, operator):
            operator.do("emergency_stop")
            await there.until(lambda facts: facts["state"] == "EmergencyStopped")
            operator.do("reset")
            await there.until(lambda facts: facts["state"] == "Idle")

    run(test)


def test_time_control_and_faults_are_refused_while_a_robot_is_real() -> None:
    async def test() -> None:
        async with pair(TEXT) as (_, operator):
            snapshot = operator.do("snapshot")["snapshot"]
            for name, parameters in {
                "rate": {"rate": 10},
                "advance": {"seconds": 1},
                "pause": {},
                "restore": {"snapshot": snapshot},
                "inject": {"fault": "overheat", "on": "bench"},
            }.items():
                assert "bench is REAL" in operator.refusal(name, **parameters)
            assert operator.do("now")["rate"] == 1.0
            assert operator.do("rate", rate=1)["rate"] == 1.0, "the rate of a REAL robot"

    run(test)


def test_a_lost_robot_is_reconnected_and_never_simulated() -> None:
    async def test() -> None:
        async with alive(TEXT) as there:
            port = int(there.endpoints[FACE[TEXT]].rsplit(":", 1)[1])
            async with alive(TEXT, at=port, real=True) as here:
                operator = Operator(here, "bench")
                operator.on("set_mode", mode="real")
                await operator.connected()
                await there.stop()
                facts = await operator.until(lambda facts: bool(facts["error"]))
                assert (facts["mode"], facts["state"]) == ("REAL", "Unknown")
                assert "Connection lost" in operator.refusal("home", robot="bench")
                async with alive(TEXT, ports={FACE[TEXT]: port}):
                    await operator.connected()
                    assert operator.facts["mode"] == "REAL"

    run(test)


def test_the_mode_is_changed_at_rest_only() -> None:
    async def test() -> None:
        async with pair(TEXT) as (_, operator):
            operator.on("move_to", pose_mm_deg=[11, 0, 100, 0, 0, 0])
            assert operator.facts["moving"]
            assert "at rest only" in operator.refusal("set_mode", robot="bench", mode="simulation")

    run(test)


# ── an arm behind grblHAL ──


def test_connecting_enables_homes_and_resets_nothing() -> None:
    async def test() -> None:
        async with pair(ARM) as (there, operator):
            assert operator.facts["enabled"] is False
            assert there.facts["enabled"] is False
            assert "not enabled" in operator.refusal("send_gcode", robot="g60", line="G0 A1")
            assert "set_joint_positions" not in operator.facts["capabilities"]

    run(test)


def test_a_real_arm_takes_lines_moves_and_steps() -> None:
    async def test() -> None:
        async with pair(ARM) as (there, operator):
            operator.on("enable")
            operator.on("move_to", joints_deg=[1, 2, 3, 0, 0, 0])
            await operator.at_rest()
            assert there.joints() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]
            operator.on("jog", frame="joint", axis=0, speed=60, step=2)
            await operator.at_rest()
            assert operator.joints() == there.joints() == [3.0, 2.0, 3.0, 0.0, 0.0, 0.0]

    run(test)


def test_a_program_on_a_real_arm_has_the_line_numbers_of_its_file() -> None:
    async def test() -> None:
        async with pair(ARM) as (there, operator):
            operator.on("enable")
            operator.on("load_program", text="G90\n\n(out)\nG1 A5 F6000\nG1 A900\n", name="p")
            operator.on("run_program")
            shown = await operator.ended()
            assert (shown["state"], shown["line"]) == ("failed", 5)
            operator.on("reset")
            await operator.connected()
            operator.on("enable")
            operator.on("load_program", text="G90\n\n(out)\nG1 A5 F6000\nG1 A0\n", name="p")
            operator.on("run_program", from_line=4)
            shown = await operator.ended()
            assert (shown["state"], shown["error"]) == ("done", "")
            assert there.joints()[0] == 0.0

    run(test)


def test_the_tool_of_a_real_arm_moves_in_a_straight_line() -> None:
    async def test() -> None:
        async with pair(ARM) as (there, operator):
            operator.on("enable")
            operator.on("move_to", joints_deg=[0, 0, 37, 0, 53, 0])
            await operator.at_rest()
            before = there.pose()
            operator.on("jog", frame="base", axis=1, speed=100, step=20)
            await operator.at_rest()
            assert there.pose() == pytest.approx([before[0], before[1] + 20.0, before[2]], abs=0.05)
            assert operator.pose() == pytest.approx(there.pose(), abs=0.05)

    run(test)


async def jogs_with_heartbeats(operator: Operator) -> bool:
    """Jogs for 0.8 s. False if the machine was so busy that a heartbeat came too late."""
    clock = asyncio.get_running_loop().time
    last = clock()
    operator.on("jog", frame="joint", axis=0, speed=20)
    for _ in range(8):
        await asyncio.sleep(0.1)
        jogging = operator.on("heartbeat")["jogging"]
        before, last = last, clock()
        if last - before > 0.9 * DEAD_MAN_SECONDS:
            return False
        assert jogging is True
    assert operator.facts["state"] == "Jog"
    return True


def test_a_jog_of_a_real_arm_ends_without_heartbeats() -> None:
    async def test() -> None:
        async with pair(ARM) as (there, operator):
            operator.on("enable")
            while not await jogs_with_heartbeats(operator):
                await operator.at_rest()
            await operator.until(lambda facts: facts["state"] == "Idle")
            assert operator.on("heartbeat")["jogging"] is False
            assert there.joints()[0] > 10.0
            reported = [event.text for event in operator.do("events")["events"]]
            assert "jog ended: no heartbeat" in reported

    run(test)


def test_a_heartbeat_does_not_restart_a_stopped_jog() -> None:
    async def test() -> None:
        async with pair(ARM) as (there, operator):
            operator.on("enable")
            while not await jogs_with_heartbeats(operator):
                await operator.at_rest()
            operator.on("emergency_stop")
            assert operator.on("heartbeat")["jogging"] is False
            operator.on("reset")
            await operator.connected()
            operator.on("enable")
            assert operator.on("heartbeat")["jogging"] is False
            stands = there.joints()
            await asyncio.sleep(0.1)
            assert there.joints() == stands

    run(test)


# ── modes of operation ──


async def in_operation_mode(operator: Operator, mode: str) -> None:
    operator.do("request_mode", mode=mode)
    while operator.do("operation_mode")["mode"] != mode:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def test_a_real_arm_gets_no_arc_outside_welding() -> None:
    async def test() -> None:
        async with pair(ARM, mode="simulation") as (there, operator):
            await in_operation_mode(operator, "SCAN_TO_PATH")
            operator.on("set_mode", mode="real")
            await operator.connected()
            operator.on("enable")
            for line in ("M3", "m 04 S100", "M64 P0", "M62P0.0"):
                assert "locked in mode SCAN_TO_PATH" in operator.on("mdi", line=line)["answer"]
            assert "locked" in operator.refusal(
                "set_output", robot="g60", pin="ARC_START", value=True
            )
            operator.on("set_output", pin="GAS", value=True)
            assert "REAL" in operator.refusal("request_mode", mode="WELDING")
            welder = [event for event in there.do("events")["events"] if event.kind == "welder"]
            assert not welder

    run(test)


def test_an_arm_in_manual_cannot_become_real() -> None:
    async def test() -> None:
        async with pair(ARM, mode="simulation") as (_, operator):
            await in_operation_mode(operator, "MANUAL")
            assert "speed limit" in operator.refusal("set_mode", robot="g60", mode="real")

    run(test)
