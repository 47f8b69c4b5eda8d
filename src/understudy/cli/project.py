"""`understudy project`: saves the work of a running cell as a folder, and loads it again."""

from pathlib import Path
from typing import Annotated, Any, Literal

from understudy.app.control_client import result_of
from understudy.cli.options import JsonOption, ReadyFileOption, RunningOption, put_json
from understudy.cli.parameters import Argument
from understudy.cli.status import one_cell

Action = Annotated[
    Literal["show", "save", "load"], Argument(help="what to do with the project folder")
]
FolderName = Annotated[
    Path | None, Argument(help="project folder; default: the one that the cell uses")
]


def project(
    action: Action,
    folder: FolderName = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Save programs, points, tools and work frames of a running cell as plain files; load them."""
    cell = one_cell(running, ready_file)
    request: dict[str, Any] = {"do": "project" if action == "show" else f"{action}_project"}
    if folder is not None and action != "show":
        request["folder"] = str(folder.absolute())
    answer = result_of(cell, request)
    if not put_json(json, answer):
        print(_outcome(action, answer))


def _outcome(action: str, answer: dict[str, Any]) -> str:
    folder = answer["folder"]
    if action == "show":
        return f"{folder}: {'saved' if answer['saved'] else 'nothing is saved yet'}"
    if action == "save":
        return "\n".join(f"wrote {Path(folder) / name}" for name in answer["files"])
    loaded = f"{folder}: loaded ({', '.join(answer['robots']) or 'no robot of this cell'})"
    return "\n".join([loaded, *(f"  note: {note}" for note in answer["notes"])])
