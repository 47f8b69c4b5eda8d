"""Operator training: exercises that the cell itself checks, with score and certificate."""

from understudy.ports import Component
from understudy.ports.jobs import JobSite

SECTIONS: dict[str, type] = {}


def build(site: JobSite) -> dict[str, Component]:
    """Nothing: a course belongs to the cell as a whole (`section`), not to a robot."""
    return {}


def check_file(text: str, file: str) -> str:
    """What an exercise file is, for `understudy check`: it is read, and its cell is built with it.
    Empty if the file is not one."""
    from understudy.jobs.training.check import checked

    return checked(text, file)
