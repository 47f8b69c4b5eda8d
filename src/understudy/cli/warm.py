"""`understudy warm`: fills the kernel cache, so that no later command waits for the compiler."""

from typing import TYPE_CHECKING

from understudy.cli.options import JsonOption, put_json

if TYPE_CHECKING:
    from understudy.config import CellConfig


def warm(json: JsonOption = None) -> None:
    """Fill the kernel cache (once, at set-up)."""
    from understudy.app.kernels import ProgressLine, fill_cache

    line = ProgressLine()
    seconds = fill_cache(line)
    line.clear()
    if not put_json(json, {"seconds": round(seconds, 3)}):
        print(f"kernel cache filled in {seconds:.1f} s")


def compile_for_program(config: "CellConfig", *more: str) -> None:
    """Compiles what a program on this cell needs and the cache does not have; ``more``: stages."""
    from understudy.app.kernels import needed_offline

    compile_kernels(*needed_offline(config), *more)


def compile_for_cell(config: "CellConfig") -> None:
    """Compiles what the running cell needs and the cache does not have."""
    from understudy.app.kernels import needed

    compile_kernels(*needed(config))


def compile_kernels(*stages: str) -> None:
    """Compiles these stages in processes of their own, with progress on stderr."""
    from understudy.app.kernels import ProgressLine, compile_missing

    compile_missing(stages, line := ProgressLine())
    line.clear()
