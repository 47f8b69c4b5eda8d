"""Child processes of a process under test."""

import psutil


def command_lines(
    pid: int | None = None, *, recursive: bool = False
) -> dict[psutil.Process, list[str]]:
    """The command lines of the living children."""
    found = {}
    for child in psutil.Process(pid).children(recursive=recursive):
        try:
            if line := child.cmdline():  # a process that has ended has none
                found[child] = line
        except psutil.NoSuchProcess:  # also one that nobody has waited for
            continue
    return found
