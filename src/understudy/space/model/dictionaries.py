"""Dictionaries of fiducial markers as OpenCV has them, and checks of what they hold.

A table, so that a cell file is checked without loading OpenCV; a test compares it with OpenCV.
"""

from typing import NamedTuple

from understudy.errors import ConfigError, unknown


class MarkerDictionary(NamedTuple):
    """`cells`: along a side of a marker, without its black border. `markers`: how many."""

    cells: int
    markers: int


DICTIONARIES = {
    f"DICT_{side}X{side}_{count}": MarkerDictionary(side, count)
    for side in (4, 5, 6, 7)
    for count in (50, 100, 250, 1000)
} | {
    name: MarkerDictionary(cells, markers)
    for names, cells, markers in (
        (("DICT_ARUCO_ORIGINAL",), 5, 1024),
        (("DICT_APRILTAG_16h5", "DICT_APRILTAG_16H5"), 4, 30),
        (("DICT_APRILTAG_25h9", "DICT_APRILTAG_25H9"), 5, 35),
        (("DICT_APRILTAG_36h10", "DICT_APRILTAG_36H10"), 6, 2320),
        (("DICT_APRILTAG_36h11", "DICT_APRILTAG_36H11"), 6, 587),
        (("DICT_ARUCO_MIP_36h12", "DICT_ARUCO_MIP_36H12"), 6, 250),
    )
    for name in names
}


def dictionary_of(name: str) -> MarkerDictionary:
    """The dictionary of this name; ConfigError with the key `dictionary` if there is none."""
    if name not in DICTIONARIES:
        raise unknown("dictionary of markers", name, DICTIONARIES, key="dictionary")
    return DICTIONARIES[name]


def check_marker(name: str, number: int) -> None:
    """Raises ConfigError if the dictionary has no marker of this number."""
    count = dictionary_of(name).markers
    if not 0 <= number < count:
        allowed = f"0 … {count - 1}"
        raise ConfigError(f"{name} has no such marker", key="id", value=number, allowed=allowed)


def check_charuco(name: str, columns: int, rows: int) -> None:
    """Raises ConfigError if the dictionary has too few markers for a ChArUco board."""
    needed, there = columns * rows // 2, dictionary_of(name).markers
    if needed > there:
        raise ConfigError(
            f"{name} has {there} markers and the board needs {needed}",
            key="columns",
            value=f"{columns} × {rows} squares",
            allowed=f"at most {2 * there} squares, or a larger dictionary",
        )
