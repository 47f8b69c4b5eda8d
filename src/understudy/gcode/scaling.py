"""G50 and G51: axis words multiplied by a factor of their axis."""

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.actions import Work, six
from understudy.gcode.modal import Scaling
from understudy.gcode.requests import ScalingChanged


def scale(work: Work) -> Refused | None:
    """G51: the axis words are the factors, in inches if G20 is active; G50: no scaling.

    The firmware keeps the factors also if a later step refuses the line.
    """
    old = work.old.scaling
    new = Scaling()
    if work.command("scaling") == "G51":
        if not work.named:
            return work.refuse(error_numbers.NO_AXIS_WORDS, "G51", "needs factors: axis words")
        factors = [work.named.get(axis, factor) for axis, factor in enumerate(old.factors)]
        new = Scaling(six(factors), active=True)
        work.named.clear()
        work.use(work.dialect.letters)
    if new.letters or new.letters != old.letters:
        work.requests.append(ScalingChanged())
        work.kept_requests.append(ScalingChanged())
    work.keep(scaling=new)
    return None


def apply_scaling(work: Work) -> Refused | None:
    """Scales the axis words of the line: all of them, also those of G10, G92 and G43.1."""
    if work.scaling.active:
        for axis, value in work.named.items():
            work.named[axis] = work.exact(value * work.scaling.factors[axis])
    return None
