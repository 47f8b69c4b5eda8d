"""Commands and queries of the demo: its state, faults, a line to a robot, and clients to copy."""

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.config.cell import endpoint_name
from understudy.config.files import ShippedClients, shipped_clients
from understudy.errors import ConfigError, Refused, unknown
from understudy.jobs.demo.director import Director
from understudy.jobs.demo.section import Config
from understudy.operator.table import Command, Commands, command, commands_of, query
from understudy.ports import Injectable
from understudy.ports.decoder import Decoder, decoder_of
from understudy.ports.hmi import Later

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Language = Literal["py", "mjs", "cs", "sh"]
BreakName = Annotated[str, Meta(max_length=64)]
MOST_SENDING = 8
ANSWER_SECONDS = 5.0
"""The longest time for the whole answer, and until its first byte."""
LISTEN_SECONDS = 1.0
"""How long to read on after the first byte, where the end of an answer cannot be seen."""
MOST_BYTES = 16 * 1024
MOST_FRAMES = 8
LONGEST_LINE = 4096
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""Where a socket that listens on all addresses is reached from this machine."""


def commands(cell: "OperatedCell") -> list[Command]:
    config = cell.config.sections.get("demo")
    if config is None:
        return []
    _check(cell, config)
    return commands_of(DemoCommands(cell, config))


def _check(cell: "OperatedCell", config: Config) -> None:
    """Raises ConfigError for names that this cell does not have; for commands and parameters once
    the table of commands is there."""
    document = cell.config.document
    for robot in config.loop:
        if robot not in cell.config.robots:
            problem = unknown("robot", robot, cell.config.robots)
            raise document.error(("demo", "loop", robot), problem)
    cell.on_table.append(lambda table: document.at((), _check_orders, config, table))
    for number, row in enumerate(config.breaks):
        place = "demo", "breaks", str(number)
        if row.on not in cell.components:
            problem = unknown("part of the cell", row.on, cell.components)
            raise document.error((*place, "on"), problem)
        if row.on in cell.cell.faces:
            continue  # its wire may have faults of its own
        part = cell.components[row.on]
        faults = part.faults() if isinstance(part, Injectable) else {}
        able = [name for name, each in faults.items() if each.how != "asked"]
        if row.fault not in able:
            problem = unknown(f"fault that can be injected at {row.on}", row.fault, able)
            raise document.error((*place, "fault"), problem)


def _check_orders(config: Config, table: Commands) -> None:
    for robot, orders in config.loop.items():
        for number, order in enumerate(orders):
            key = f"demo.loop.{robot}.{number}"
            if "robot" in order.parameters:
                allowed = f"none: the loop adds {robot}"
                raise ConfigError("a robot", key=f"{key}.parameters.robot", allowed=allowed)
            table.check(order.command, {"robot": robot, **order.parameters}, key)


class RobotWire(Struct, frozen=True):
    """A robot that clients reach at an endpoint. `kind`: its row in `shipped_clients`."""

    robot: str
    endpoint: str
    kind: str


class DemoCommands:
    """What the demo panel of the page uses."""

    def __init__(self, cell: "OperatedCell", config: Config) -> None:
        self._cell = cell
        self._clients = shipped_clients()
        self._wires: dict[str, RobotWire] = {}
        for wire in self._wires_with_clients():
            self._wires.setdefault(wire.robot, wire)
        wires = {wire.endpoint: self._clients[wire.kind] for wire in self._wires.values()}
        self._director = Director(cell, config, wires)
        cell.on_stop.append(self._stop)
        self._sending: set[asyncio.Task[Any]] = set()

    def _stop(self) -> None:
        for task in self._sending:
            task.cancel()

    def _wires_with_clients(self) -> Iterator[RobotWire]:
        """The wires of each robot for which clients are shipped."""
        endpoints = self._cell.config.endpoints()
        for name, robot in self._cell.config.robots.items():
            for face_name, face in robot.faces.items():
                for suffix in face.wires:
                    kind = f"{face.kind}.{suffix}" if suffix else face.kind
                    if kind in self._clients:
                        yield RobotWire(name, endpoint_name(name, face_name, suffix), kind)
            found = self._cell.robots.find(name)
            if not isinstance(found, Refused) and found.shared_endpoints:
                for endpoint in self._cell.config.group_wires:
                    if endpoint in self._clients and endpoint in endpoints:
                        yield RobotWire(name, endpoint, endpoint)

    # ── queries ──

    @query()
    def demo(self) -> dict[str, Any]:
        """What the demo does: its loop, what is broken, and the wires of the robots."""
        director = self._director
        broken = director.broken
        return {
            "runs": director.runs,
            "held_s": {name: round(left, 1) for name, left in director.held().items()},
            "broken": None if broken is None else self._seen(broken.robot, broken.row.name),
            "breaks": [row.name for row in director.config.breaks],
            "wires": [self._wire(name) for name in self._cell.config.robots if name in self._wires],
        }

    def _seen(self, name: str, break_name: str) -> dict[str, Any]:
        """What is broken, and what can be seen of the robot now."""
        robot = self._cell.robots.find(name)
        assert not isinstance(robot, Refused)
        fault = next(row for row in self._director.config.breaks if row.name == break_name)
        program = robot.side.program
        reading = None if program is None else program.reading(robot.side.time.now())
        jobs = [job for job in self._cell.robots.components[name].values() if hasattr(job, "play")]
        status = [job.status(self._cell.pump.now()) for job in jobs]
        problems = [getattr(each, "last_error", "") for each in status]
        how = robot.condition()
        return {
            "name": break_name,
            "fault": fault.fault,
            "on": fault.on,
            "robot": name,
            "state": how.state,
            "error": how.error or getattr(reading, "error", "") or "".join(problems),
        }

    def _wire(self, robot: str) -> dict[str, Any]:
        wire = self._wires[robot]
        clients = self._clients[wire.kind]
        address = self._address(wire.endpoint)
        lines = [
            each.replace(clients.robot, robot) if clients.robot else each for each in clients.lines
        ]
        return {
            "robot": robot,
            "endpoint": wire.endpoint,
            "address": address,
            "form": clients.form,
            "lines": lines,
            "meaning": list(clients.meaning),
            "open": bool(address),
        }

    def _address(self, endpoint: str) -> str:
        """Where clients on this machine find an endpoint; empty: it is not open, a package for it
        is missing."""
        address = str(self._cell.facts()["endpoints"].get(endpoint, ""))
        for everywhere, here in EVERYWHERE.items():
            address = address.replace(f"//{everywhere}:", f"//{here}:")
        return address

    @query()
    def demo_client(self, robot: str, language: Language = "py") -> Any:
        """A complete small client of a robot, with the address of this cell."""
        wire = self._open_wire(robot)
        if isinstance(wire, Refused):
            return wire
        clients = self._clients[wire.kind]
        return {"text": filled(clients, language, robot, self._address(wire.endpoint))}

    def _open_wire(self, robot: str) -> RobotWire | Refused:
        if robot not in self._wires:
            return Refused(str(unknown("robot with a wire", robot, self._wires)))
        wire = self._wires[robot]
        if not self._address(wire.endpoint):
            return Refused(f"{wire.endpoint} is not open; `understudy doctor` says what it needs")
        return wire

    # ── commands ──

    @command()
    def break_something(self, name: BreakName = "") -> Any:
        """Inject a fault of the demo.

        `name`: without it the next of a random order, which follows from the seed of the cell.
        """
        return self._director.break_something(name) or self.demo()

    @command()
    def mend(self) -> dict[str, Any]:
        """Clear what is broken; the robots of the demo begin their rounds again."""
        self._director.mend()
        return self.demo()

    @command()
    def run_demo(self, on: bool = True) -> dict[str, Any]:
        """Let the demo give orders to the robots, or not."""
        self._director.run(on)
        return self.demo()

    @command()
    def put_parts_back(self, robot: str = "") -> Any:
        """Put all parts where they were at the start."""
        return self._director.put_parts_back() or {"robot": robot}

    @command()
    def send_line(
        self, robot: str, line: Annotated[str, Meta(min_length=1, max_length=LONGEST_LINE)]
    ) -> Any:
        """Send one line to the socket of a robot, as a client does; the raw answer.

        `line`: text, bytes in hexadecimal, or a subject of NATS with its payload, as the wire is.
        """
        wire = self._open_wire(robot)
        if isinstance(wire, Refused):
            return wire
        clients = self._clients[wire.kind]
        data = encoded(line, clients, robot)
        if isinstance(data, Refused):
            return data
        if len(self._sending) >= MOST_SENDING:
            return Refused(f"{MOST_SENDING} lines wait for their answers: try again later")
        later = Later()
        task = self._cell.loop.create_task(self._send(wire, clients, data, later))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return later

    async def _send(
        self, wire: RobotWire, clients: ShippedClients, data: bytes, later: Later
    ) -> None:
        answer: Any = Refused("the cell ends")
        try:
            answer = await self._exchanged(wire, clients, data)
        finally:
            later.settle(answer)

    async def _exchanged(self, wire: RobotWire, clients: ShippedClients, data: bytes) -> Any:
        answer = await exchange(self._address(wire.endpoint), data, clients.ends)
        if isinstance(answer, Refused):
            return answer
        face = self._cell.cell.faces.get(wire.endpoint)
        frames = clients.form == "bytes" and face is not None
        return {
            "robot": wire.robot,
            "endpoint": wire.endpoint,
            "sent": shown(data, clients.form),
            "answer": shown(answer, clients.form),
            "bytes": len(answer),
            "meaning": meaning(answer, decoder_of(face)) if face is not None and frames else [],
        }


def filled(clients: ShippedClients, language: str, robot: str, address: str) -> str:
    """The text of a client with the place of the robot."""
    text = clients.texts[language]
    host, _, port = address.partition("//")[2].rpartition(":")
    own_host, _, own_port = clients.place.rpartition(":")
    text = text.replace(own_port, port).replace(own_host, host.strip("[]"))
    return text.replace(clients.robot, robot) if clients.robot else text


# ── a line to the socket of a robot ─────────────────────────────────────────────────────────────


def encoded(line: str, wire: ShippedClients, robot: str) -> bytes | Refused:
    """The bytes of a typed line, in the form of its wire."""
    match wire.form:
        case "bytes":
            try:
                return bytes.fromhex(line)
            except ValueError:
                return Refused("this wire has frames of bytes: type them in hexadecimal, as 01 00")
        case "nats":
            return _published(line, wire, robot)
    return line.encode() if line in wire.status else line.encode() + b"\n"


def _published(line: str, wire: ShippedClients, robot: str) -> bytes | Refused:
    """What a client of NATS sends: it subscribes to the answers and publishes the message."""
    subject, *rest = line.split(maxsplit=1) or [""]
    try:
        payload = json.loads("".join(rest))
    except (ValueError, RecursionError) as problem:
        return Refused(f"type a subject and its payload as JSON: {problem}")
    number = str(uuid.uuid4())
    envelope = {"messageId": number, "correlationId": number, "payload": payload}
    body = json.dumps(envelope).encode()
    own = [each.replace(wire.robot, robot) for each in wire.hear]
    subscriptions = "".join(f"SUB {each} {n}\r\n" for n, each in enumerate(own, start=1))
    head = f'CONNECT {{"verbose":false}}\r\n{subscriptions}PUB {subject} {len(body)}\r\n'
    return head.encode() + body + b"\r\n"


async def exchange(address: str, data: bytes, ends: str = "") -> bytes | Refused:
    """What the socket at this address answers. ``ends``: matches the end of an answer."""
    host, _, port = address.partition("//")[2].rpartition(":")
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return Refused(f"{address} cannot be reached: no connection within {ANSWER_SECONDS:g} s")
    except OSError as problem:
        return Refused(f"{address} cannot be reached: {problem.strerror or problem}")
    heard = b""
    try:
        writer.write(data)
        await writer.drain()
        clock = asyncio.get_running_loop().time
        until = clock() + ANSWER_SECONDS
        while len(heard) < MOST_BYTES:
            more = await asyncio.wait_for(reader.read(4096), until - clock())
            if not more:
                break
            if not heard and not ends:
                until = min(until, clock() + LISTEN_SECONDS)
            heard += more
            if ends and re.search(ends, heard.decode("latin-1")):
                break
    except TimeoutError:
        pass
    except OSError as problem:
        return Refused(f"{address}: {problem.strerror or problem}")
    finally:
        writer.close()
    return heard


def shown(data: bytes, form: str) -> list[str]:
    """Bytes as lines for a reader."""
    if form == "bytes":
        return [data[at : at + 48].hex(" ", 4) for at in range(0, min(len(data), 384), 48)]
    return [line for line in data.decode("utf-8", "backslashreplace").splitlines() if line.strip()]


def meaning(data: bytes, decoder: Decoder) -> list[dict[str, Any]]:
    """The fields of the first frames of an answer, without those that repeat the one before."""
    frames, _ = decoder.cut_answers(data)
    fields = [dict(decoder.read_answer(frame, "").fields) for frame in frames]
    new = [each for n, each in enumerate(fields) if each and (n == 0 or each != fields[n - 1])]
    return [
        {key: value for key, value in each.items() if not key.startswith("filling")}
        for each in new[:MOST_FRAMES]
    ]
