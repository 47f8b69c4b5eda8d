"""`python -m tests.robots.grblhal.senders NAME FILE`: records a session of a sender as golden data.

The sender is installed in a temporary folder; FILE gets the steps of a short session.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.robots.grblhal.senders.session import SENDERS, record
from tests.robots.grblhal.senders.steps import Distiller, differences_of

LINES = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SENDERS)
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chat = record(SENDERS[given.name], Path(folder), LINES)
    steps = Distiller().read(chat.events)
    if found := differences_of(steps):
        sys.exit(
            f"the moments of this session are not those of its lines, record again: {found[0]}"
        )
    lines = ",\n ".join(map(json.dumps, steps))
    given.file.write_text(f"[\n {lines}\n]\n")


main()
