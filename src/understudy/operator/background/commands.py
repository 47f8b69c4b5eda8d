"""What the desk offers about runs."""

from typing import Any

from msgspec import Struct

from understudy.errors import Refused
from understudy.operator.background.runner import Runs
from understudy.operator.table import Command


class StartRun(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    parameters: dict[str, Any] = {}


class WhichRun(Struct, frozen=True, forbid_unknown_fields=True):
    id: int


def run_commands(runs: Runs) -> list[Command]:
    def result(given: WhichRun) -> Any:
        run = runs.get(given.id)
        return run if isinstance(run, Refused) else {"run": run, "result": runs.result(given.id)}

    return [
        Command(
            "start_run",
            "begin a long query in a process of its own",
            lambda given: runs.start(given.kind, given.parameters),
            StartRun,
        ),
        Command("runs", "the long queries, old and new", lambda _: runs.all(), role="viewer"),
        Command("run_result", "what came out of a run", result, WhichRun, role="viewer"),
        Command("cancel_run", "end a run", lambda given: runs.cancel(given.id), WhichRun),
    ]
