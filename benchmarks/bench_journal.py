"""The journal and the recorder: what each message that passes costs, against a bare list."""

import time
from collections.abc import Callable

from benchmarks import Row
from understudy.ports.decoder import Decoder, Operation, operations_by_name
from understudy.robots.grblhal.face import DECODER as GRBLHAL
from understudy.robots.mobile.face import DECODER as FLEET
from understudy.robots.text_robot.face import DECODER as TEXT
from understudy.units import NS_PER_MS
from understudy.wire.chat import EventRecord
from understudy.wire.connection import Event
from understudy.wire.journal import WireJournal

MESSAGES, ROUNDS = 5000, 5
END = "bench.face"
POSE = b'{"x":1.25,"y":7.5,"yaw":0.1}'
STATE = (
    b'{"payloadVersion":1,"messageId":"495cc7b5-b33c-883d-ba5f-4db24aafa638","robotId":"robot-1",'
    b'"ts":"2026-01-01T00:00:00.000Z","payload":{"pose":' + POSE + b',"velocity":{"linear":0.5,'
    b'"angular":0.0},"batteryPercent":100.0,"localizationStatus":"OK","activeTask":null}}'
)
KNOWN = operations_by_name([Operation("GET_POS"), Operation("G1"), Operation("state")])


def rows() -> list[Row]:
    move = Event(0, END, "1", ">", b"G1 X10.5 Y20.25 F1500\n")
    line = Event(0, END, "1", ">", b"GET_POS\n")
    state = Event(0, END, "nats", "<", STATE, ("robot.robot-1.state", ""))
    return [
        *rows_of("line of text", TEXT, line),
        *rows_of("line of grblHAL", GRBLHAL, move),
        *rows_of("state of a mobile robot", FLEET, state),
    ]


def rows_of(what: str, decoder: Decoder, event: Event) -> list[Row]:
    bare = per_message(bare_list, event)
    kept = per_message(lambda: WireJournal({END: decoder}).note, event)
    strict = per_message(lambda: strict_journal(decoder), event)
    recorded = per_message(lambda: EventRecord().note, event)
    figures = (("journal", kept), ("strict journal", strict), ("recorder", recorded))
    return [
        Row(f"{name}, {what}", us(took), f"{us(bare)} bare list", f"{took / bare:.0f}", "< 200 µs")
        for name, took in figures
    ]


def bare_list() -> Callable[[Event], None]:
    events: list[Event] = []
    return events.append


def strict_journal(decoder: Decoder) -> Callable[[Event], None]:
    """A journal that reads each message at once, as that of a strict cell."""
    read = Decoder(
        cut_requests=decoder.cut_requests,
        read_request=decoder.read_request,
        read_answer=decoder.read_answer,
        operations=lambda: KNOWN,
    )
    return WireJournal({END: read}, on_finding=lambda finding: None).note


def per_message(make: Callable[[], Callable[[Event], None]], event: Event) -> float:
    """Seconds for one message, the best of some rounds; each message has a time of its own."""
    events = [
        Event(n * NS_PER_MS, event.endpoint, event.peer, event.kind, event.data, event.address)
        for n in range(MESSAGES)
    ]
    best = float("inf")
    for _ in range(ROUNDS):
        note = make()
        begun = time.process_time()
        for each in events:
            note(each)
        best = min(best, (time.process_time() - begun) / MESSAGES)
    return best


def us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"
