"""What a firmware drives: the axes behind it, as far as it must know them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from understudy.errors import Refused
from understudy.motion.path import Floats
from understudy.simulation.program.options import ControllerOptions
from understudy.simulation.program.queue import Queue

Figures = Mapping[int, float]
"""Settings by grblHAL's numbers."""


@dataclass(frozen=True)
class Plant:
    """``unit`` of the axes' paths (1 for mm and deg, DEG for rad); the rest are questions to it.

    ``change``: the settings with one of them changed, or why not. ``build``: options and queue
    under these settings, standing at a position at a moment; None where settings change neither.
    ``homing``: how long the search for switches takes before it fails; None: the axes know where
    home is. ``jogged``: something else moves the axes, ``where`` it has taken them, and how to
    ``brake`` or ``halt`` it.
    ``switch``: the operator, no line, has spindle and coolant on or off. ``energize``: a line has
    come. ``first_line``: own numbers of lines begin after this one.
    """

    unit: float
    defaults: Figures
    change: Callable[[Figures, int, str], Figures | Refused]
    build: Callable[[Figures, Floats, float], tuple[ControllerOptions, Queue]] | None = None
    on_steps: Callable[[Floats], Floats] = lambda position: position
    homing: Callable[[Figures], float] | None = None
    jogged: Callable[[], bool] = lambda: False
    where: Callable[[int], Floats] | None = None
    brake: Callable[[int], None] = lambda now: None
    halt: Callable[[int], None] = lambda now: None
    switch: Callable[[bool, bool, int], None] = lambda spindle, coolant, now: None
    energize: Callable[[int], None] = lambda now: None
    first_line: int = 0
