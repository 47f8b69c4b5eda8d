"""The file of a transcript. A write error ends the transcript, not the conversation."""

import contextlib
import logging
from pathlib import Path
from typing import TextIO

from understudy.errors import ConfigError

log = logging.getLogger(__name__)


class Transcript:
    """A text file that is opened when the wires listen, so that a failed start keeps the old file.

    Text written before that is buffered. If the disk fills up later, the rest of the transcript is
    dropped and a warning is logged.
    """

    def __init__(self, path: Path, option: str, *, overwrite: bool = True) -> None:
        self._path = path
        self._option = option
        self._held: list[str] = []
        self._file: TextIO | None = None
        self._lost = False
        if not overwrite and path.is_file():
            raise ConfigError(
                f"{option}: the file exists; choose another name, or overwrite it with --force",
                file=str(path),
            )

    def open(self) -> None:
        try:
            self._file = self._path.open("w", encoding="utf-8", buffering=1)
            self._file.writelines(self._held)
            self._file.flush()
        except OSError as problem:
            self._give_up()
            raise ConfigError(
                f"{self._option} cannot be written: {problem.strerror}", file=str(self._path)
            ) from None
        self._held.clear()

    def write(self, text: str) -> None:
        if self._lost:
            return
        if self._file is None:
            self._held.append(text)
            return
        try:
            self._file.write(text)
        except OSError as problem:
            log.warning("%s: the transcript ends here: %s", self._path, problem.strerror)
            self._give_up()

    def close(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as problem:
                log.warning("%s: the end is missing: %s", self._path, problem.strerror)

    def _give_up(self) -> None:
        self._lost = True
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
