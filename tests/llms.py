"""`docs/llms.txt`, the index of the documentation for language models: python -m tests.llms

It is made of `docs/README.md` and of the table of commands; a test says when it is out of date.
"""

from pathlib import Path

from understudy.registry import cli_rows

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs/llms.txt"
HEAD = """\
# Understudy

> Stand-in robots: a robot cell that is not there, but answers on the wire as the real one does,
> moves as the real one would, and proves a program before the real robot runs it. A Python package
> with a command line, a page, a pytest plugin and an MCP server.

Install: `pip install 'understudy-0.1.0-py3-none-any.whl[hmi,nats,log]'`; `make dist` in a clone
writes the wheel. Start a cell: `understudy run CELL` (`understudy cells` lists them). Check a
program: `understudy validate PROGRAM --cell CELL --json`. In pytest the fixtures `text_robot`,
`grbl_robot`, `kuka_robot`, `robot`, `fleet` and `cell` are robots on virtual time.
Every command but `mcp` has `--json`; exit code 0: passed, 1: failed, 2: wrong use. Units are in
names (`_mm`, `_deg`, `_s`); lengths without a unit in the name are metres, angles radians. Nothing
commands a real robot without `--real`.
"""


def text() -> str:
    index = (ROOT / "docs/README.md").read_text().partition("\n## ")
    rows = cli_rows()
    commands = [f"- `understudy {row.example}`: {row.summary}" for row in rows.values()]
    pages = f"## {index[2]}".rstrip()
    return "\n".join([HEAD, pages, "", "## Commands, each with an example", "", *commands, ""])


if __name__ == "__main__":
    FILE.write_text(text())
