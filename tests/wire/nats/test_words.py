"""The tables of docs/wire/nats.md and the subjects of the messages are those of the wire."""

import re
from pathlib import Path

from understudy.robots.mobile.runtime.messages import FROM_ROBOT, TO_ROBOT
from understudy.wire.nats import DEFAULT_MAX_AGE_S, DEFAULT_MAX_MB, Config
from understudy.wire.nats.streams import FROM_ROBOTS, TO_ROBOTS

PAGE = (Path(__file__).parents[3] / "docs/wire/nats.md").read_text()


def test_the_subjects_are_those_of_the_messages() -> None:
    assert set(FROM_ROBOTS) == set(FROM_ROBOT)
    assert set(TO_ROBOTS) == set(TO_ROBOT)


def test_the_page_lists_all_keys_with_their_defaults() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", PAGE.partition("## Streams")[0], re.M)
    shown: dict[str, str] = {}
    for keys, defaults in rows:
        names = re.findall(r"`(\w+)`", keys)
        values = [value.strip("` ") for value in defaults.split(",")]
        shown |= dict(zip(names, values * len(names) if len(values) == 1 else values, strict=False))
    made = {"max_age_s": DEFAULT_MAX_AGE_S, "max_mb": DEFAULT_MAX_MB}
    config = Config()
    for name in Config.__struct_fields__:
        default = made.get(name, getattr(config, name))
        text = "–" if default in ("", (), None) else default
        assert shown.pop(name) == (f"{text:g}" if isinstance(text, float) else str(text)), name
    assert shown == {}


def test_the_page_lists_the_subjects() -> None:
    for subjects, stream in ((FROM_ROBOTS, "ROBOT_IN"), (TO_ROBOTS, "ROBOT_OUT")):
        (row,) = re.findall(rf"^\| `{stream}` \| `robot\.\*\.` (.*) \|$", PAGE, re.M)
        assert tuple(re.findall(r"`([\w.]+)`", row)) == subjects
