"""Key `fit` of a cell file: intervals of values that were estimated from a recording.

`understudy fit` writes it. The values themselves stand at their own keys.

    fit:
      mill:
        recording: morning.chat
        confidence: 0.99
        intervals:
          robots.mill.settings.120: {low: 498.9, high: 500.4, seen_from: 298 reports in 2 motions}
"""

from typing import Annotated

from msgspec import Meta, Struct

from understudy.errors import ConfigError

IN_DIGEST = False
MOST_INTERVALS = 1000


class Interval(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the value of a key lies, and what it was estimated from."""

    low: float
    high: float
    seen_from: str = ""


class RobotFit(Struct, frozen=True, forbid_unknown_fields=True):
    """The fit of a robot. `confidence`: probability that all intervals hold together. `intervals`:
    by the key of the value, from the top of the cell file."""

    recording: str = ""
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.99
    intervals: Annotated[dict[str, Interval], Meta(max_length=MOST_INTERVALS)] = {}


Config = dict[str, RobotFit]


def parsed(section: Config) -> Config:
    for robot, fit in section.items():
        for key, each in fit.intervals.items():
            if each.low > each.high:
                raise ConfigError(
                    "the lower end is above the upper one",
                    key=f"{robot}.intervals.{key}",
                    value=[each.low, each.high],
                    allowed="low, then high",
                )
    return section
