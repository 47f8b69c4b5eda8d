"""Files of the user's come first; what is shipped is found by its name."""

from pathlib import Path

import pytest

from understudy.config.files import read_program, shipped_programs
from understudy.errors import ConfigError


@pytest.mark.parametrize("name", ["seam", "seam.gcode"])
def test_a_shipped_program_is_found_by_its_name(tmp_path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_program(Path(name)) == shipped_programs()["seam"].read_bytes()


def test_a_file_of_the_users_comes_first(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seam.gcode").write_text("G28\n")
    assert read_program(Path("seam.gcode")) == b"G28\n"


@pytest.mark.parametrize("name", ["nothing.gcode", ".", "a\0b"])
def test_what_cannot_be_read_is_told(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_program(Path(name))
