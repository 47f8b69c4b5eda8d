"""`python -m benchmarks [NAME …]`: tables of ratios against the peers."""

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import Row


def names() -> list[str]:
    """Names of the benchmarks."""
    folder = Path(__file__).parent
    return sorted(path.stem.removeprefix("bench_") for path in folder.glob("bench_*.py"))


def main(wanted: list[str]) -> int:
    """Prints each table as soon as it is measured; returns 2 if a name is unknown."""
    there = names()
    unknown = [name for name in wanted if name not in there]
    if unknown:
        print(
            f"error: no benchmark {', '.join(unknown)}; there are: {', '.join(there)}",
            file=sys.stderr,
        )
        return 2
    console = Console()
    for name in [name for name in there if not wanted or name in wanted]:
        table = Table(*Row._fields, title=name)
        for row in import_module(f"benchmarks.bench_{name}").rows():
            table.add_row(*row)
        console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
