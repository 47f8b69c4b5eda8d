"""`python -m tests.robots.grblhal.judge`: compares our machine with the firmware itself.

The firmware is a program that the user has built (UNDERSTUDY_GRBLHAL_SIM). Random sessions are
played to both; of each kind of difference the first is printed, with as few lines as show it.
"""

import argparse
from collections import Counter
from functools import partial
from random import Random

from tests.robots.grblhal.judge.compare import Difference, first_difference, shrunk
from tests.robots.grblhal.judge.grammar import SESSION, session
from tests.robots.grblhal.judge.partners import binary, firmware, our_machine


def main() -> int:
    given = _arguments()
    judge = partial(firmware, binary())
    kinds: Counter[str] = Counter()
    for number in range(given.first, given.first + given.sessions):
        steps = session(Random(number), given.steps)
        found = first_difference(steps, judge, our_machine)
        if found is None:
            continue
        if found.kind not in kinds and given.shrink:
            found = shrunk(found, judge, our_machine)
        if found.kind not in kinds:
            _show(number, found)
        kinds[found.kind] += 1
    print(f"\n{given.sessions} sessions of {given.steps} steps: {sum(kinds.values())} differ")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    return 1 if kinds else 0


def _show(number: int, found: Difference) -> None:
    print(f"\nsession {number}: {found.kind}")
    for step in found.steps:
        print(f"  > {step!r}")
    for name, lines in (("firmware", found.expected), ("ours", found.actual)):
        print(f"  {name}: {list(lines)[:6]}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=SESSION)
    parser.add_argument("--first", type=int, default=0, help="number of the first session")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
