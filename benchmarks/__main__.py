"""`python -m benchmarks [NAME …]`: a table of ratios against the peers."""

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import Row


def main() -> None:
    there = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    chosen = [name for name in there if not sys.argv[1:] or name[6:] in sys.argv[1:]]
    table = Table(*Row._fields)
    for name in chosen:
        for row in import_module(f"benchmarks.{name}").rows():
            table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
