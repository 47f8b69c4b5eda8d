"""G-code: text to words, words to blocks, blocks to requests.

`parse` reads a line, `interpret` applies it to a `Modal` state and returns the requests to the
machine (`requests`). Refusals carry grblHAL's error numbers. `program.program_lines` reads whole
programs; it is compiled code and therefore not imported here.
"""

from understudy.gcode.blocks import (
    Block,
    LineWords,
    Problem,
    Word,
    format_block,
    parse,
    tokenize,
)
from understudy.gcode.dialect import (
    ARM,
    GRBLHAL_ARM,
    GRBLHAL_MACHINE,
    ZERO,
    Axes,
    Dialect,
    Spelling,
    rotary_axes,
)
from understudy.gcode.interpreter import Interpretation, KnownPosition, interpret, jog
from understudy.gcode.modal import (
    Modal,
    Tool,
    active_codes,
    after_refusal,
    after_reset,
    modes_report,
    work_offset,
)
from understudy.gcode.work import Position

__all__ = [
    "ARM",
    "GRBLHAL_ARM",
    "GRBLHAL_MACHINE",
    "ZERO",
    "Axes",
    "Block",
    "Dialect",
    "Interpretation",
    "KnownPosition",
    "LineWords",
    "Modal",
    "Position",
    "Problem",
    "Spelling",
    "Tool",
    "Word",
    "active_codes",
    "after_refusal",
    "after_reset",
    "format_block",
    "interpret",
    "jog",
    "modes_report",
    "parse",
    "rotary_axes",
    "tokenize",
    "work_offset",
]
