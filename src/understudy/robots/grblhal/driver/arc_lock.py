"""Lines that can switch the arc of an arm on: refused while its mode of operation locks the arc.

M3 and M4, M62 and M64 of the output ARC_START, and lines in which an expression may stand for one
of them. Macros that are stored in the controller are not read.
"""

import re

_SPINDLE = re.compile(r"M0*[34](\.0*)?(?![\d.])")
_OUTPUT = re.compile(r"M0*6[24](\.0*)?(?![\d.])")
_OTHER_PIN = re.compile(r"P[+]?0*\.?0*[1-9]")
_EXPRESSION = re.compile(r"[MP][\[#]")


def can_switch_arc_on(line: str) -> bool:
    """Whether a line without comments may switch the arc on."""
    words = "".join(line.split()).upper()
    if _SPINDLE.search(words) or _EXPRESSION.search(words):
        return True
    return bool(_OUTPUT.search(words)) and not _OTHER_PIN.search(words)
