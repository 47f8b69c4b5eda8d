"""What the module of a section of a cell file declares, and what it gets of its cell.

A section is a key at the top of a cell file that belongs to a capability. Its module is a row of
the table `sections` (`registry`) and declares

    Config                      class of what is written at the key

and, as far as it has them,

    parsed(section)             the value that the cell keeps for it
    parsed_beside(section, file)   the same, of a section that names files beside the cell file
    build(site)                 components of the cell as a whole, by name; they wake last
    IN_DIGEST                   False: the state of the cell does not depend on it
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from understudy.ports import Component, FaultSource


@dataclass(frozen=True)
class CellSite:
    """A cell for which the components of a section are built. `section`: what the cell keeps for
    it. `kinds`: of the robots, by their names. `components`: of all robots and devices."""

    cell: str
    seed: int
    section: Any
    kinds: Mapping[str, str]
    components: Mapping[str, Component]
    fault_source: FaultSource
