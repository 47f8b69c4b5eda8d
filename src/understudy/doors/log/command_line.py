"""`understudy log`, `find`, `share` and `open`: look into a log, plot it, go back into it, pass it
on."""

import asyncio
import csv as csv_files
import io
import json as json_text
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from msgspec import to_builtins

from understudy.cli.options import JsonOption, json_beside_text, put_bytes, put_json
from understudy.cli.parameters import Argument, Exit, Group, Option
from understudy.cli.run import run_on_page
from understudy.config import CellConfig
from understudy.doors.log.file import LogFile, Mark, marks_of, ns
from understudy.doors.log.replay import (
    Comparison,
    Repetition,
    config_of,
    piece_of,
    repeated,
    run_of_facts,
)
from understudy.errors import ConfigError, unknown
from understudy.units import seconds

log = Group(
    help="Look into a log of `run --log FILE.mcap`, plot it, go back into it.",
)
KINDS = ("alarm", "collision", "fault", "line", "snapshot")
MANIFEST, LOG_NAME = "understudy.json", "run.mcap"
LARGEST_MANIFEST, LARGEST_SHARED = 1 << 20, 4 << 30
MOST_CURVES, MOST_POINTS = 12, 4000
WIDTH, HEIGHT, LEFT, TOP = 960, 360, 70, 30
COLORS = ("#2266cc", "#cc5522", "#228844", "#884499", "#aa8811", "#118899")

LogArgument = Annotated[Path, Argument(metavar="LOG", help="a log, FILE.mcap")]
Topic = Annotated[str, Argument(metavar="TOPIC", help="of `understudy log info`")]
OutOption = Annotated[
    Path | None, Option("--out", metavar="FILE", help="write here; default: print")
]


# ── looking ─────────────────────────────────────────────────────────────────────────────────────


@log.command()
def info(file: LogArgument, json: JsonOption = None) -> None:
    """Show the run of a log, its length, its channels and what happened."""
    found = LogFile(file)
    counts, sizes = Counter[str](), Counter[str]()
    dropped = 0
    for entry in found.messages():
        counts[entry.topic] += 1
        sizes[entry.topic] += len(entry.data)
        if entry.topic == "/understudy/dropped":
            dropped = int(entry.value["messages"])
    marks = Counter(mark.kind for mark in marks_of(found))
    first, last = found.span
    facts = found.facts
    about = {
        "file": str(file),
        "run": to_builtins(facts),
        "from_s": seconds(first),
        "to_s": seconds(last),
        "whole": found.whole,
        "messages": sum(counts.values()),
        "dropped": dropped,
        "marks": dict(marks),
        "channels": {
            topic: {
                "schema": found.schemas[topic],
                "messages": counts[topic],
                "bytes": sizes[topic],
            }
            for topic in sorted(counts)
        },
    }
    if put_json(json, about):
        return
    print(f"{file}: cell {facts.name}, seed {facts.seed}, {facts.started}")
    end = "" if about["whole"] else "; its end is missing: it is being written, or was cut"
    lost = f", {dropped} dropped" if dropped else ""
    print(
        f"{seconds(first):.3f} s to {seconds(last):.3f} s, {about['messages']} messages{lost}{end}"
    )
    print(", ".join(f"{count} × {kind}" for kind, count in marks.items()) or "no marks")
    for topic in sorted(counts):
        print(f"{counts[topic]:8} {sizes[topic]:10}  {topic}  {found.schemas[topic]}")


def find(
    file: LogArgument,
    first: Annotated[
        str, Option("--first", metavar="KIND", help=f"one of {', '.join(KINDS)}")
    ] = "collision",
    json: JsonOption = None,
) -> None:
    """Find the first collision (alarm, fault …) of a log: time, program line, seed."""
    if first not in KINDS:
        raise unknown("kind of mark", first, KINDS, key="--first")
    found = LogFile(file)
    facts = found.facts
    mark = next((each for each in marks_of(found) if each.kind == first), None)
    answer = None if mark is None else {**to_builtins(mark), "seed": facts.seed}
    if not put_json(json, answer):
        print(f"{file}: no {first}" if mark is None else _found(mark, facts.seed))
    if mark is None:
        raise Exit(1)


def _found(mark: Mark, seed: int) -> str:
    line = f", line {mark.line} of {mark.program}" if mark.line else ""
    return f"{mark.time_s:.3f} s{line}, seed {seed}: {mark.kind} {mark.robot}: {mark.text}"


# ── values ──────────────────────────────────────────────────────────────────────────────────────


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Plain values by their place; a member of a list by its `name`, else by its number."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key != "timestamp":
                yield from flat(each, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            own = each.get("name") if isinstance(each, dict) else None
            rest = {k: v for k, v in each.items() if k != "name"} if own is not None else each
            yield from flat(rest, f"{name}.{number if own is None else own}")
    else:
        yield name, value


def _checked(found: LogFile, topic: str) -> str:
    if topic not in found.schemas:
        raise unknown("topic", topic, sorted(found.schemas))
    return topic


@log.command()
def csv(file: LogArgument, topic: Topic, out: OutOption = None, json: JsonOption = None) -> None:
    """Write a channel as a table: simulated seconds, and a column for each value."""
    found = LogFile(file)
    rows = [
        (seconds(each.at), dict(flat(each.value)))
        for each in found.messages([_checked(found, topic)])
    ]
    printed = put_json(json, [{"time_s": at, **values} for at, values in rows])
    if printed and out is None:
        return
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    text = io.StringIO()
    writer = csv_files.writer(text)
    writer.writerow(["time_s", *names])
    writer.writerows([at, *(values.get(name, "") for name in names)] for at, values in rows)
    put_bytes("-" if out is None else str(out), [text.getvalue().encode()])


@log.command()
def plot(
    file: LogArgument,
    curves: Annotated[
        list[str],
        Argument(metavar="TOPIC[:VALUE]...", help="e.g. /g60/joint_states:joints.J1"),
    ],
    out: Annotated[Path, Option("--out", metavar="FILE", help="an SVG file")] = Path("plot.svg"),
    json: JsonOption = None,
) -> None:
    """Draw values over simulated time."""
    found = LogFile(file)
    series = [each for text in curves for each in _series(found, text)]
    if not series or len(series) > MOST_CURVES:
        names = ", ".join(name for name, _ in series[:20])
        raise ConfigError(
            f"{len(series)} curves", value=" ".join(curves), allowed=f"1 to {MOST_CURVES}: {names}"
        )
    put_bytes(out, [svg(series).encode()])
    shown = [name for name, _ in series]
    if not put_json(json, {"file": str(out), "curves": shown}):
        print(f"{out}: {', '.join(shown)}")


Series = tuple[str, list[tuple[float, float]]]


def _series(found: LogFile, text: str) -> list[Series]:
    """The numbers of a topic whose place begins with the text behind the colon."""
    topic, _, begin = text.partition(":")
    points: dict[str, list[tuple[float, float]]] = {}
    for entry in found.messages([_checked(found, topic)]):
        for name, value in flat(entry.value):
            if name.startswith(begin) and isinstance(value, int | float):
                points.setdefault(f"{topic}:{name}", []).append((seconds(entry.at), float(value)))
    return list(points.items())


def svg(series: Iterable[Series]) -> str:
    """Curves over time with their names."""
    rows = [(name, points[:: -(-len(points) // MOST_POINTS)]) for name, points in series]
    times = [at for _, points in rows for at, _ in points]
    values = [value for _, points in rows for _, value in points]
    (t0, t1), (v0, v1) = (min(times), max(times)), (min(values), max(values))
    span_t, span_v = (t1 - t0) or 1.0, (v1 - v0) or 1.0

    def place(at: float, value: float) -> str:
        x = LEFT + WIDTH * (at - t0) / span_t
        return f"{x:.1f},{TOP + HEIGHT * (1.0 - (value - v0) / span_v):.1f}"

    foot, drawn = TOP + HEIGHT, []
    for number, (name, points) in enumerate(rows):
        color = COLORS[number % len(COLORS)]
        line = " ".join(place(at, value) for at, value in points)
        drawn.append(f'<polyline fill="none" stroke="{color}" points="{line}"/>')
        at = foot + 45 + 16 * number
        drawn.append(f'<text x="{LEFT}" y="{at}" fill="{color}">{escape(name)}</text>')
    marks = "".join(
        f'<text x="{LEFT - 6}" y="{y}" text-anchor="end">{value:.6g}</text>'
        for y, value in ((TOP + 4, v1), (foot, v0))
    )
    size = f'width="{LEFT + WIDTH + 20}" height="{foot + 60 + 16 * len(rows)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
        f'<path d="M{LEFT} {TOP}V{foot}H{LEFT + WIDTH}" fill="none" stroke="#888"/>{marks}'
        f'<text x="{LEFT}" y="{foot + 18}">{t0:.3f} s</text>'
        f'<text x="{LEFT + WIDTH}" y="{foot + 18}" text-anchor="end">{t1:.3f} s</text>'
        f"{''.join(drawn)}</svg>\n"
    )


# ── going back ──────────────────────────────────────────────────────────────────────────────────

AtOption = Annotated[
    float | None, Option("--at", min=0.0, help="simulated seconds; default: the end")
]
PageOption = Annotated[bool, Option("--hmi/--no-hmi", help="with the page")]
ReadyOption = Annotated[
    Path | None, Option("--ready-file", metavar="FILE", help="as of `understudy run`")
]
ShownOption = Annotated[bool, Option("--open/--no-open", help="open the page in the browser")]


@log.command()
def fork(
    file: LogArgument,
    at: AtOption = None,
    hmi: PageOption = True,
    open_: ShownOption = True,
    ready_file: ReadyOption = None,
    check: Annotated[
        bool, Option("--check", help="only compare with the log; no cell stays")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Run the cell of a log from an instant on, as a new run.

    It begins at the snapshot before that instant and repeats what clients and operators sent.
    """
    found = LogFile(file)
    with config_of(found) as config:
        until = found.span[1] if at is None else ns(at)
        piece, run = piece_of(found, until), run_of_facts(found.facts)
        if check:
            comparison = asyncio.run(repeated(config, run, piece))
            _show(comparison, "", json)
            if comparison.difference:
                raise Exit(1)
            return
        with json_beside_text(json) as lines:
            repetition = Repetition(piece)
            run_on_page(
                config,
                None,
                file.absolute().parent,
                run=run,
                note=repetition.note,
                doors=repetition.doors,
                page=hmi,
                open_page=open_,
                ready_file=ready_file,
                lines=lines,
            )


def _show(comparison: Comparison, begin: str, json: str | None) -> None:
    if not put_json(json, comparison.document()):
        print(f"{begin}{comparison.words()}", flush=True)


# ── passing on ──────────────────────────────────────────────────────────────────────────────────


def share(
    file: Annotated[Path, Argument(metavar="FILE.zip", help="the file to write")],
    source: Annotated[Path, Option("--log", metavar="LOG", help="the log")] = Path(LOG_NAME),
    json: JsonOption = None,
) -> None:
    """Pack a log for another computer: cell, files, seed, journal, snapshots, and its hash."""
    found = LogFile(source)
    with config_of(found) as config:
        comparison = _whole(found, config)
        manifest = {
            **to_builtins(found.facts),
            "to_s": seconds(comparison.until),
            "events": comparison.count,
            "hash": comparison.hash,
        }
    if comparison.difference:
        raise ConfigError(f"not packed: {comparison.words()}", file=str(source))
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(MANIFEST, json_text.dumps(manifest, indent=1))
        packed.write(source, LOG_NAME)  # compressed already
    _show(comparison, f"{file}: ", json)


def _whole(found: LogFile, config: CellConfig) -> Comparison:
    piece = piece_of(found, found.span[1], whole=True)
    return asyncio.run(repeated(config, run_of_facts(found.facts), piece))


def open(
    file: Annotated[Path, Argument(metavar="FILE.zip", help="of `understudy share`")],
    check: Annotated[bool, Option("--check", help="only repeat it and compare the hash")] = False,
    at: AtOption = None,
    show: ShownOption = True,
    ready_file: ReadyOption = None,
    json: JsonOption = None,
) -> None:
    """Repeat a shared run here, compare its hash, and show it on the page."""
    with TemporaryDirectory(prefix="understudy-open-") as folder:
        manifest = _unpacked(file, Path(folder))
        place = Path(folder, LOG_NAME)
        found = LogFile(place)
        with config_of(found) as config:
            comparison = _whole(found, config)
        if comparison.hash != manifest["hash"]:
            raise ConfigError(
                f"the run is another one here: {comparison.difference or 'another hash'}",
                file=str(file),
                value=comparison.hash,
                allowed=str(manifest["hash"]),
            )
        if check:
            _show(comparison, f"{file}: ", json)
            return
        with json_beside_text(json):
            print(f"{file}: {comparison.words()}", flush=True)
        fork(place, at, hmi=True, open_=show, ready_file=ready_file, json=json)


def _unpacked(file: Path, folder: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(file) as packed:
            for name, most in ((MANIFEST, LARGEST_MANIFEST), (LOG_NAME, LARGEST_SHARED)):
                size = packed.getinfo(name).file_size
                if size > most:
                    allowed = f"at most {most} bytes"
                    raise ConfigError(f"{name} in it is too large", value=size, allowed=allowed)
            manifest: dict[str, Any] = json_text.loads(packed.read(MANIFEST))
            packed.extract(LOG_NAME, folder)
    except (OSError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile) as problem:
        raise ConfigError(f"this is no shared run: {problem}", file=str(file)) from None
    except ConfigError as problem:
        raise problem.within("", file=str(file)) from None
    if not isinstance(manifest, dict) or "hash" not in manifest:
        raise ConfigError("this is no shared run: it has no hash", file=str(file))
    return manifest
