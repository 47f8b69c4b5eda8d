"""`make parity`: writes docs/parity, what each wire emulates and how that was verified.

The rows are those of the tables that the faces read (`OPERATIONS` of a module).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, get_args

from understudy.ports.decoder import Evidence, Operation, Sections, Status

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "parity"
README = ROOT / "README.md"


class Wire(NamedTuple):
    title: str
    module: str


WIRES: Mapping[str, Wire] = {
    "grblhal": Wire("grblHAL", "understudy.robots.grblhal.face"),
    "kuka_eki": Wire("KUKA EKI", "understudy.robots.kuka.face"),
    "text_tcp": Wire("Text TCP robot", "understudy.robots.text_robot.face"),
    "fleet": Wire("Mobile robots on NATS", "understudy.robots.mobile.face"),
    "vda5050": Wire("VDA 5050", "understudy.robots.mobile.vda5050.face"),
    "gripper": Wire("Modbus grippers", "understudy.devices.gripper.modbus.face"),
    "camera": Wire("Camera protocol", "understudy.devices.camera.face"),
    "vision": Wire("Vision protocol", "understudy.vision.server"),
    "hmi_link": Wire("HMI link", "understudy.operator.doors.hmi_link"),
}
STATUSES: Sequence[Status] = get_args(Status)
EVIDENCE: Sequence[Evidence] = get_args(Evidence)
JUDGE_TEST = "tests/robots/grblhal/judge/test_golden_chats.py"
LEGEND = """\
*emulated*: acts and answers as the real one; *partly*: the note says what is missing;
*formal*: accepted without an effect; *refused*: known, and refused.
*Verified*: what it was compared with. *real firmware*: recorded answers of the real grblHAL core
(build 20260817, run as a PC program); *document*: the design document or the standard of the wire;
*us*: tests of our own only."""


def sections_of(wire: str) -> Sections:
    found: Sections = import_module(WIRES[wire].module).OPERATIONS()
    return found


def rows_of(wire: str) -> list[Operation]:
    return [row for rows in sections_of(wire).values() for row in rows]


def page(wire: str) -> str:
    rows = rows_of(wire)
    tests = list(dict.fromkeys(row.test for row in rows))
    lines = [
        f"# Parity: {WIRES[wire].title}",
        "",
        "Made by `make parity` from the tables that the code reads.",
        "",
        f"{len(rows)} operations: {_counts(Counter(row.status for row in rows), STATUSES)}.",
        f"Verified: {_counts(Counter(row.verified for row in rows), EVIDENCE)}.",
        "",
        LEGEND,
    ]
    for title, section in sections_of(wire).items():
        lines += [
            "",
            f"## {title}",
            "",
            "| operation | what it is | status | verified | test | note |",
        ]
        lines += ["|---|---|---|---|---|---|"]
        lines += [_line(row, tests.index(row.test) + 1) for row in section]
    lines += ["", "## Tests", ""]
    lines += [f"{number}. {_link(test)}" for number, test in enumerate(tests, 1)]
    return "\n".join(lines) + "\n"


def index() -> str:
    lines = [
        "# Parity: what is emulated, and how that was verified",
        "",
        "One page for each wire, one row for each operation, made by `make parity`.",
        "`understudy faces NAME` prints the same rows.",
        "",
        sentence(),
        "",
        f"| wire | {' | '.join(STATUSES)} | {' | '.join(EVIDENCE)} |",
        "|---" * (1 + len(STATUSES) + len(EVIDENCE)) + "|",
    ]
    for name, wire in WIRES.items():
        rows = rows_of(name)
        status, verified = (Counter(row[n] for row in rows) for n in (2, 3))
        cells = [*(status[each] for each in STATUSES), *(verified[each] for each in EVIDENCE)]
        lines.append(f"| [{wire.title}]({name}.md) | {' | '.join(str(n or '') for n in cells)} |")
    return "\n".join([*lines, "", LEGEND]) + "\n"


def sentence() -> str:
    """The sentence of the README."""
    rows = [row for wire in WIRES for row in rows_of(wire)]
    status, verified = (Counter(row[n] for row in rows) for n in (2, 3))
    firmware, manual, client = (
        verified[each] for each in ("real firmware", "vendor's manual", "third-party client")
    )
    return (
        f"Of {len(rows)} operations on {len(WIRES)} wires, {status['emulated']} are emulated, "
        f"{status['partly']} partly, {status['formal']} accepted without an effect and "
        f"{status['refused']} refused;\n{firmware} were compared with the real firmware, {manual} "
        f"with frames of a vendor's manual and {client} with clients of others."
    )


def pages() -> Iterator[tuple[Path, str]]:
    yield FOLDER / "README.md", index()
    for wire in WIRES:
        yield FOLDER / f"{wire}.md", page(wire)


def _counts(counter: Mapping[str, int], order: Sequence[str]) -> str:
    return ", ".join(f"{counter[each]} {each}" for each in order if counter.get(each))


def _line(row: Operation, test: int) -> str:
    name = row.name.replace("|", "\\|")
    cells = (f"`{name}`", row.meaning, row.status, row.verified, str(test), row.note)
    return re.sub(r" +\|", " |", f"| {' | '.join(cells)} |")


def _link(test: str) -> str:
    path = test.partition("::")[0]
    return f"[{test.removeprefix('tests/')}](../../{path})"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages():
        path.write_text(text)
    before = README.read_text()
    after = re.sub(r"Of \d+ operations on \d+ wires(.|\n)*?clients of others\.", sentence(), before)
    README.write_text(after)


if __name__ == "__main__":
    main()
