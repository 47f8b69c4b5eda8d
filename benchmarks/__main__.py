"""`python -m benchmarks [NAME …]`: tables of ratios against the peers.

Each ratio is compared with the committed one (`baseline.json`): exit code 1 if one fell by more
than 30 %, or a benchmark failed. `--write-baseline` keeps the ratios of this run instead.
"""

import json
import os
import platform
import re
import sys
import traceback
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import getdoc, signature
from math import log10
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import Case, Row

FOLDER = Path(__file__).parent
BASELINE = FOLDER / "baseline.json"
KEPT = 0.7
"""Share of its committed value that a ratio must keep."""
RATIO = re.compile(r"(\d[\d,]*\.?\d*)(×?)")
PACKAGES = ("numpy", "numba", "pin", "coal", "mujoco", "python-fcl", "drake", "tesseract-robotics")


class Measured(NamedTuple):
    """One benchmark: what it is measured on, and its rows, or why there are none."""

    name: str
    scene: str
    rows: list[Row]
    failure: str = ""


class Fallen(NamedTuple):
    """A ratio that is worse than the committed one."""

    name: str
    what: str
    before: str
    now: str


def names() -> list[str]:
    """Names of the benchmarks."""
    return sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def measure(name: str, case: Case) -> Measured:
    module = import_module(f"benchmarks.bench_{name}")
    rows: Callable[..., list[Row]] = module.rows
    try:
        found = rows(case) if signature(rows).parameters else rows()
    except Exception:  # noqa: BLE001 one benchmark that fails must not hide the others
        return Measured(name, getdoc(module) or "", [], traceback.format_exc())
    return Measured(name, getdoc(module) or "", found)


def parsed(ratio: str) -> tuple[float, bool] | None:
    """The value of a ratio, and whether more is better; None if there is no peer."""
    found = RATIO.fullmatch(ratio)
    return (float(found[1].replace(",", "")), found[2] == "×") if found else None


def kept_share(before: str, now: str) -> float | None:
    """How much of a ratio is left: 1 is as before, 0.5 is twice as bad; None without figures."""
    old, new = parsed(before), parsed(now)
    if old is None or new is None or old[1] != new[1] or not (old[0] and new[0]):
        return None
    return new[0] / old[0] if new[1] else old[0] / new[0]


def fallen(measured: Sequence[Measured], baseline: dict[str, dict[str, str]]) -> list[Fallen]:
    found = []
    for name, _, rows, _ in measured:
        for row in rows:
            before = baseline.get(name, {}).get(row.what, "")
            share = kept_share(before, row.ratio)
            if share is not None and share < KEPT:
                found.append(Fallen(name, row.what, before, row.ratio))
    return found


def ratios(measured: Sequence[Measured]) -> dict[str, dict[str, str]]:
    return {
        m.name: {r.what: r.ratio for r in m.rows if parsed(r.ratio)} for m in measured if m.rows
    }


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = re.search(r"model name\s*: (.*)", _text(Path("/proc/cpuinfo")))
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu[1] if cpu else platform.processor(),
        "cores": str(os.cpu_count()),
        "load before": load,
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    return found | dict(_versions())


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _versions() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            yield package, "not installed"


def as_table(measured: Measured) -> Table:
    caveats = any(row.caveat for row in measured.rows)
    columns = Row._fields if caveats else Row._fields[:-1]
    table = Table(*columns, title=measured.name)
    for row in measured.rows:
        table.add_row(*row[: len(columns)])
    return table


def as_markdown(on: dict[str, str], measured: Sequence[Measured]) -> str:
    lines = ["# Benchmarks", "", " · ".join(f"{key} {value}" for key, value in on.items())]
    for name, scene, rows, failure in measured:
        lines += ["", f"## {name}", "", scene, ""]
        lines += [f"Failed: `{failure.splitlines()[-1]}`"] if failure else []
        head = "| " + " | ".join(Row._fields) + " |"
        lines += [head, "|" + "---|" * len(Row._fields)] if rows else []
        lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def as_json(on: dict[str, str], measured: Sequence[Measured]) -> str:
    found: list[dict[str, Any]] = [
        {
            "name": m.name,
            "scene": m.scene,
            "failure": m.failure,
            "rows": [r._asdict() for r in m.rows],
        }
        for m in measured
    ]
    return json.dumps({"machine": on, "benchmarks": found}, indent=1, ensure_ascii=False) + "\n"


def as_plot(measured: Sequence[Measured]) -> str:
    """SVG: one bar for each ratio, on a logarithmic axis; better than the peer is to the right."""
    bars = []
    for m in measured:
        for row in m.rows:
            ratio = parsed(row.ratio)
            if ratio and ratio[0]:
                value, more = ratio
                bars.append((f"{m.name}: {row.what}", value if more else 1 / value))
    left, right, height, unit = 520, 420, 18, 60.0
    body = []
    for k, (what, value) in enumerate(bars):
        y, length = 24 + height * k, max(-right / 2, min(right / 2, log10(value) * unit))
        x = left + right / 2 + min(0.0, length)
        color = "#2a7" if value >= 1 else "#c62"
        text = what.replace("&", "&amp;").replace("<", "&lt;")
        body.append(
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{text[:80]}</text>'
            f'<rect x="{x:.1f}" y="{y + 2}" width="{abs(length):.1f}" height="{height - 5}" '
            f'fill="{color}"/><text x="{left + right + 8}" y="{y + 12}">{value:.3g}×</text>'
        )
    middle, end = left + right / 2, 24 + height * len(bars)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right + 80}" height="{end + 8}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{middle}" y="14" text-anchor="middle">times better than the peer</text>'
        f'<line x1="{middle}" y1="20" x2="{middle}" y2="{end}" stroke="#888"/>'
        f"{''.join(body)}</svg>\n"
    )


def main(words: list[str]) -> int:
    """Prints each table as soon as it is measured."""
    options = ArgumentParser(
        "benchmarks", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*", metavar="NAME", help="all, if none is given")
    options.add_argument("--seed", type=int, help="another cell of random shapes")
    options.add_argument(
        "--scene", default="", metavar="CELL", help="arm and environment of a cell"
    )
    options.add_argument("--json", type=Path, metavar="FILE")
    options.add_argument("--markdown", type=Path, metavar="FILE")
    options.add_argument("--plot", type=Path, metavar="FILE.svg")
    options.add_argument(
        "--write-baseline", action="store_true", help="keep the ratios of this run"
    )
    chosen = options.parse_args(words)
    unknown = [name for name in chosen.names if name not in names()]
    if unknown:
        there = ", ".join(names())
        print(f"error: no benchmark {', '.join(unknown)}; there are: {there}", file=sys.stderr)
        return 2
    console, on = Console(), machine()
    console.print(" · ".join(f"{key} {value}" for key, value in on.items()), style="dim")
    measured = []
    for name in [name for name in names() if not chosen.names or name in chosen.names]:
        measured.append(measure(name, Case(chosen.seed, chosen.scene)))
        console.print(as_table(measured[-1]))
        if measured[-1].failure:
            console.print(measured[-1].failure, style="red", markup=False)
    for file, text in (
        (chosen.json, as_json(on, measured)),
        (chosen.markdown, as_markdown(on, measured)),
        (chosen.plot, as_plot(measured)),
    ):
        if file:
            file.write_text(text)
    return _judged(measured, chosen.write_baseline, standard=not (chosen.seed or chosen.scene))


def _judged(measured: Sequence[Measured], write: bool, *, standard: bool) -> int:
    """The exit code; other cases than the standard one have no committed ratios."""
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    if write and standard:
        merged = dict(sorted((baseline | ratios(measured)).items()))
        BASELINE.write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n")
        return 0
    worse = fallen(measured, baseline) if standard else []
    for name, what, before, now in worse:
        print(f"worse: {name}, {what}: {before} → {now}", file=sys.stderr)
    failed = [m.name for m in measured if m.failure]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if worse or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
