"""Section `modes`: modes of operation of a robot, and the changeover between them."""

from typing import Literal

from msgspec import Struct

OperationMode = Literal["WELDING", "PICKPLACE", "SCAN_TO_PATH", "MANUAL", "CHANGEOVER"]


class ModesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`start`: the mode in which the cell starts."""

    start: Literal["WELDING", "PICKPLACE", "SCAN_TO_PATH", "MANUAL"] = "MANUAL"
