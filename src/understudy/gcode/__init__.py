"""G-code: text into words, words into blocks, blocks into requests.

`parse` understands a line, `interpret` carries it out on a `Modal` state and returns what the
machine is asked for (`requests`). Refusals carry grblHAL's numbers. Whole programs are read by
`program.program_lines`, in compiled code, which is why it is not imported here.
"""

from understudy.gcode.blocks import Block, format_block, parse
from understudy.gcode.dialect import (
    ARM,
    GRBLHAL_ARM,
    GRBLHAL_MACHINE,
    ZERO,
    Axes,
    Dialect,
    rotary_axes,
)
from understudy.gcode.interpreter import At, Step, interpret, jog
from understudy.gcode.modal import (
    Modal,
    Tool,
    active_codes,
    after_reset,
    modes_report,
    work_offset,
)
from understudy.gcode.words import Line, Problem, Spelling, Word, tokenize
from understudy.gcode.work import Position

__all__ = [
    "ARM",
    "GRBLHAL_ARM",
    "GRBLHAL_MACHINE",
    "ZERO",
    "At",
    "Axes",
    "Block",
    "Dialect",
    "Line",
    "Modal",
    "Position",
    "Problem",
    "Spelling",
    "Step",
    "Tool",
    "Word",
    "active_codes",
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
