"""What a recording of a text robot shows: how long its moves take, and the delay of its answers.

A move is answered when it has ended; GET_POS and GET_STATUS are answered at once, so that they show
the delay. A client that sends ahead makes moves wait for each other: the time of a move begins when
the one before it was answered.
"""

from statistics import median

from understudy.config import CellConfig
from understudy.offline.fit import Measured, Recorded, events_of
from understudy.units import seconds
from understudy.wire.chat import Chat

MOVES = {"MOVE_ABS": "move_abs_ms", "MOVE_REL": "move_rel_ms", "HOME": "home_ms"}
AT_ONCE = ("GET_POS", "GET_STATUS")


def recorded_robot(config: CellConfig, robot: str, chat: Chat) -> Recorded:
    """The times of moves and the delay of answers in a recording."""
    endpoint, events = events_of(chat, config, robot, "text_tcp")
    waiting: list[tuple[str, float]] = []
    said = heard = b""
    answered = 0.0
    taken: dict[str, list[tuple[float, float, float]]] = {}
    for event in events:
        at = 1e3 * seconds(event.at)
        if event.kind == ">":
            *lines, said = (said + event.data).split(b"\n")
            words = [line.split(None, 1)[:1] for line in lines]
            waiting += [(word[0].decode("latin-1").upper(), at) for word in words if word]
        elif event.kind == "<":
            *lines, heard = (heard + event.data).split(b"\n")
            for line in lines[: len(waiting)]:
                verb, sent = waiting.pop(0)
                if line.startswith(b"OK"):
                    taken.setdefault(verb, []).append((at, sent, answered))
                answered = at
    waits = [
        at - sent for verb in AT_ONCE for at, sent, last in taken.get(verb, ()) if sent >= last
    ]
    usual = median(waits) if waits else 0.0
    notes = (
        () if waits else ("without GET_POS or GET_STATUS the times contain the delay of answers",)
    )
    measured = [
        Measured(
            ("robots", robot, key),
            f"time of {verb}",
            "ms",
            [at - max(sent + usual, last) for at, sent, last in taken.get(verb, ())],
            "answers",
            whole=True,
        )
        for verb, key in MOVES.items()
    ]
    keys = ("scenario", "rules", "answer_delay", "parameters", "delay_ms")
    measured.append(Measured(keys, "delay of answers", "ms", waits, "answers"))
    rules = {"answer_delay": {"fault": "message_delay", "on": endpoint}} if waits else {}
    return Recorded(measured=tuple(measured), rules=rules, notes=notes)
