"""The key `demo` of a cell file.

demo:
  loop:
    g60: [{command: enable}, {command: run_program}]
  breaks:
    - {name: gas, fault: gas_fault, on: g60.welder}
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Name = Annotated[str, Meta(pattern=r"^[a-z_]{1,32}$")]


class Order(Struct, frozen=True, forbid_unknown_fields=True):
    """A command of the cell; the name of the robot is added to its parameters. `at_once`: the next
    order follows without a rest, since this one moves nothing."""

    command: str
    parameters: dict[str, Any] = {}
    at_once: bool = False


class Break(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that the demo injects. `name`: of its texts. `restart`: the robot begins its round
    again, so that the fault is seen soon."""

    name: Name
    fault: str
    on: str
    restart: bool = False


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """`loop`: by robot, orders that are given one after the other, again and again: the next one
    when the robot has stood for `rest_s`. `runs`: the loop begins with the cell. `hold_s`: for so
    long the loop leaves a robot alone to which a client or an operator has given an order.
    `mend_s`: what was broken is mended after this time. `idle_s`: after so long without an order
    the cell is put back as it was. All but `rest_s` in seconds of wall time."""

    loop: dict[str, tuple[Order, ...]] = {}
    breaks: tuple[Break, ...] = ()
    runs: bool = True
    rest_s: Seconds = 2.5
    hold_s: Seconds = 30.0
    mend_s: Seconds = 60.0
    idle_s: Seconds = 120.0


IN_DIGEST = False
"""The state of the cell does not depend on who gives it orders."""
