"""Limits of the worker processes of a cell: memory and wall time.

The memory limit is RLIMIT_DATA: writable memory of the process itself. Libraries reserve far more
address space than they use (numpy, numba, the stacks of threads), so a limit of the address space
would refuse work that fits; measured, RLIMIT_DATA counts about 90 MB more than is resident.
"""

import os
import resource
from dataclasses import dataclass

from understudy.errors import ConfigError

MEMORY_VARIABLE = "UNDERSTUDY_WORKER_MEMORY_MB"
SECONDS_VARIABLE = "UNDERSTUDY_WORKER_SECONDS"
MB = 1 << 20
FEWEST_MB, MOST_MB = 512, 4096
"""Least limit that is allowed; largest one that is chosen by itself."""
DEFAULT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """`memory` in bytes; `seconds`: wall time of one piece of work."""

    memory: int
    seconds: float = DEFAULT_SECONDS

    @property
    def memory_exceeded(self) -> str:
        return (
            f"it needs more memory than a worker process may have: {self.memory // MB} MB "
            f"({MEMORY_VARIABLE} sets another limit)"
        )

    @property
    def time_exceeded(self) -> str:
        return (
            f"it took longer than a worker process may take: {self.seconds:g} s "
            f"({SECONDS_VARIABLE} sets another limit)"
        )


def worker_limits() -> WorkerLimits:
    """Half of the machine's memory, at most 4 GB, and an hour; or what the environment says."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    half_mb = max(min(pages * size // 2 // MB, MOST_MB), FEWEST_MB)
    memory_mb = _number(MEMORY_VARIABLE, half_mb, least=FEWEST_MB)
    return WorkerLimits(int(memory_mb) * MB, _number(SECONDS_VARIABLE, DEFAULT_SECONDS, least=1.0))


def _number(variable: str, default: float, *, least: float) -> float:
    given = os.environ.get(variable, "")
    if not given:
        return default
    try:
        value = float(given)
    except ValueError:
        value = 0.0
    if not least <= value < 1e9:
        raise ConfigError("not usable", key=variable, value=given, allowed=f"{least:g} or more")
    return value


def limit_memory(size: int) -> None:
    """Limits the memory of this process; a limit that is already lower stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([size, *known]), hard))
