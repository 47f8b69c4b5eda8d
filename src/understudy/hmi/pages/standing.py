"""How a robot stands, in one word and one colour, whatever kind of robot it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Mood = Literal["calm", "busy", "held", "alarm", "off"]

MOODS: Mapping[str, Mood] = {
    "Idle": "calm",
    "Run": "busy",
    "Moving": "busy",
    "Jog": "busy",
    "Home": "busy",
    "Hold": "held",
    "Door": "held",
    "Tool": "held",
    "Check": "held",
    "Disabled": "off",
    "Sleep": "off",
    "Error": "alarm",
    "Alarm": "alarm",
    "EmergencyStop": "alarm",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """`word` is the robot's own; `why` is empty while nothing is wrong."""

    word: str
    mood: Mood
    line: int = 0
    why: str = ""


UNKNOWN = Standing("Unknown", "off")


def standing(part: Mapping[str, Any] | None) -> Standing:
    """From the robot's status, of which every kind tells its own."""
    if part is None:
        return UNKNOWN
    word = part.get("state") or ("EmergencyStop" if part.get("stopped") else "Idle")
    word = str(word).partition(":")[0]
    mood = MOODS.get(word, "busy")
    if part.get("error") or part.get("error_code") or part.get("alarm"):
        mood = "alarm"
    return Standing(word, mood, int(part.get("line") or 0), _why(part, word, mood))


def _why(part: Mapping[str, Any], word: str, mood: Mood) -> str:
    if mood != "alarm":
        return ""
    code = part.get("error_code") or part.get("alarm")
    return str(part.get("error_message") or (f"{word} {code}" if code else word))
