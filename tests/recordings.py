"""What recorded sessions of the real grblHAL firmware say: operations, each with its recordings."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from understudy.robots.grblhal.face import cut_requests, read_request

GOLDEN = Path(__file__).parent / "golden"
WIRE, JUDGE = GOLDEN / "grblhal_wire", GOLDEN / "grblhal_judge"


@cache
def recorded(folder: Path) -> Mapping[str, str]:
    """Operations that were sent to the firmware, each with the first file that has it."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.json*")):
        for sent in _sent(path):
            requests, rest = cut_requests(sent)
            for request in (*requests, rest):
                for name in read_request(request, "").names:
                    found.setdefault(name, path.name)
    return found


def _sent(path: Path) -> Iterator[bytes]:
    if path.suffix == ".jsonl":
        for line in path.read_text().splitlines():
            yield from (step.encode("latin-1") for step in json.loads(line)["steps"])
        return
    session = json.loads(path.read_text())
    yield from (f"{setting}\n".encode() for setting in session["settings"])
    for step in session["steps"]:
        hexadecimal = bytes.fromhex(step.get("hex", ""))
        yield hexadecimal or step.get("send", "").encode("latin-1")
