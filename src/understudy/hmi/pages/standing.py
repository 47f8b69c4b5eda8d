"""How a robot stands, in one word and one colour, whatever kind of robot it is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Mood = Literal["calm", "busy", "held", "alarm", "off"]
Facts = Mapping[str, Any]

MOODS: Mapping[str, Mood] = {
    "Idle": "calm",
    "Hold": "held",
    "Door": "held",
    "Tool": "held",
    "Check": "held",
    "Sleep": "off",
    "Stopped": "alarm",
    "Error": "alarm",
    "Alarm": "alarm",
    "EmergencyStopped": "alarm",
}
"""Whatever else a robot says of itself, it is busy."""


@dataclass(frozen=True, slots=True)
class Standing:
    """`word` is the robot's own."""

    word: str
    mood: Mood
    line: int = 0


def standing(facts: Facts, view: Facts) -> Standing:
    """From what the desk knows of a robot, and what the link told of it last."""
    said = str(view.get("state") or facts.get("state") or "")
    word = said.partition(":")[0] or "Unknown"
    mood = MOODS.get(word, "busy") if word != "Unknown" else "off"
    if facts.get("error"):
        mood = "alarm"
    return Standing(word, mood, int(view.get("line") or 0))


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is wrong with a robot now, and what to do about it."""

    robot: str
    text: str
    what_to_do: str = ""


def alarms(robots: Mapping[str, Facts], parts: Facts, events: Iterable[Facts]) -> list[Alarm]:
    """Of every robot: its controller's, then its welder's, unless that is the same; advice from the
    event that told it."""
    advice = {(e["robot"], e["text"]): e["what_to_do"] for e in events if e["kind"] == "alarm"}
    found = []
    for robot, facts in robots.items():
        welder = parts.get(f"{robot}.welder", {})
        error = facts.get("error") or ""
        if error:
            found.append(Alarm(robot, error, advice.get((robot, error), "")))
        text = f"weld fault: {welder.get('reason')}"
        if welder.get("fault") and text not in error:
            found.append(Alarm(robot, text, advice.get((robot, text), "")))
    return found
