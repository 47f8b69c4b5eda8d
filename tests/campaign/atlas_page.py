"""`docs/simulation/fault_atlas.md`, made of the declared faults.

Write it anew with `python -m tests.campaign.atlas_page`; a test says when it is out of date.
"""

import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from understudy.campaign.fault_atlas import DeclaredRow, declared_rows
from understudy.ports.fault_reactions import LiveReaction, Reaction, words_of

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/simulation/fault_atlas.md"
WIDTH = 138
HEAD = """\
# Fault atlas

Every declared fault of every robot, device, face, wire and job has a row: the situation in which
it is injected, what must be seen, and within how long. `understudy faults --run` tries each fault
of a cell in a cell of its own, and reports what it has seen:

```sh
understudy faults --run --cell g60_welding
understudy faults --run --cell pick_place --fault slip --fault air_lost --json
understudy faults --run --cell default --junit atlas.xml --html atlas.html
```

- **seen**: the whole reaction came, with its times of simulation after the injection.
- **missing**: a part of it did not come in time; the exit code is 1.
- **not possible**: the situation cannot be reached in this cell, and why (a gripper without a job
  that grips, for example).

A trial builds the cell anew with its seed and its triggered rules, but without rules that act by
chance. It runs on virtual time, so that every repetition is the same. The report names each trial
as a scenario rule, `{fault: slip, on: g60.gripper, at_s: 4.68}`: in the cell file it does the same
in a live cell. Faults between wire and face are compared with what a client of the same cell hears
without the fault.

A fault of a server (`power_cut`, `stream_lost` …) is tried in a live cell with a real NATS server
of its own, on wall time. The own server's store then loses what was written since its last sync.

In `make test` every declared fault is tried once; in `make soak` all faults of all shipped cells:
__FIGURES__.

A package that adds a fault adds its row beside it: `REACTIONS` in the module that has `FAULTS`, see
[Extending](../extending.md#add-a-fault). This page is generated: `python -m
tests.campaign.atlas_page`.
"""
FIGURES = "14 cells, 551 faults, 546 reactions seen, 0 missing, 5 not possible"


def text() -> str:
    parts = [HEAD.replace("__FIGURES__", FIGURES)]
    for acts_on, rows in groupby(declared_rows(), key=lambda row: row.acts_on):
        parts.append(f"\n## {acts_on[0].upper()}{acts_on[1:]}\n\n")
        parts += [line for row in rows for line in _lines(row)]
    return "".join(parts)


def _lines(row: DeclaredRow) -> Iterator[str]:
    assert row.row is not None, f"{row.fault} of {row.acts_on} has no row"
    during = f" (while `{row.during}` works)" if row.during else ""
    says = f"- **`{row.fault}`**{during}: {row.declared.doc}. {_expected(row.row)}"
    for line in textwrap.wrap(says, WIDTH, subsequent_indent="  ", break_on_hyphens=False):
        yield f"{line}\n"


def _expected(row: Reaction | LiveReaction) -> str:
    given = ", ".join(f"{key} {value}" for key, value in row.parameters.items())
    then = f"; then {words_of(row.then)}" if row.then is not None else ""
    seen = "; ".join(each.words for each in row.seen)
    figures = f" ({given})" if given else ""
    return f"*{words_of(row.situation)}*{figures}{then} → {seen}; within {row.within_s:g} s."


if __name__ == "__main__":
    FILE.write_text(text())
