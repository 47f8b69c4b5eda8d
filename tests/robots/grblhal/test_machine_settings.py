"""`$n=v`: values that the firmware accepts, and error numbers of those that it refuses."""

import pytest

from understudy.errors import ConfigError, Refused
from understudy.robots.grblhal.setting_table import SETTINGS
from understudy.robots.grblhal.settings import Settings, read_settings

PRINTED = """$0=5.0
$11=0.020
$110=6000.000
$113=7200.000
$376=3
$398=30
$70=anything at all
ok
"""


def test_a_missing_setting_has_the_firmwares_default() -> None:
    settings = Settings()
    assert settings.steps.tolist() == [250.0] * 6
    assert settings.limits.velocity.tolist() == [500.0 / 60.0] * 6
    assert settings.limits.acceleration.tolist() == [10.0] * 6
    assert settings.travel.tolist() == [200.0] * 6
    assert (settings.junction_deviation, settings.arc_tolerance) == (0.01, 0.002)
    assert settings.planner_blocks == 100
    assert settings.rotary == (False, False, False, True, True, True)
    assert not settings.feed_is_linear
    assert settings.rests_at_offsets


def test_lines_as_the_firmware_prints_them() -> None:
    settings = read_settings(PRINTED)
    assert settings.limits.velocity.tolist()[:4] == [100.0, 500 / 60, 500 / 60, 120.0]
    assert settings.junction_deviation == 0.02
    assert settings.rotary == (False, False, False, True, True, False)
    assert settings.planner_blocks == 30


def test_an_unknown_setting_is_kept_as_text() -> None:
    assert read_settings(PRINTED).others == {70: "anything at all"}


def test_empty_lines_and_comments_are_skipped() -> None:
    assert read_settings("\n ; of the old machine\n$11=0.02 ; mm\n")[11] == 0.02


@pytest.mark.parametrize(
    ("text", "line"),
    [("$11=0.01\nG1 X10", 2), ("$110=abc", 1), ("\n$398=5", 2), ("$100=-1", 1), ("110=500", 1)],
)
def test_an_error_names_file_and_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError) as error:
        read_settings(text, "machine.txt")
    assert str(error.value).startswith(f"machine.txt:{line}: ")


@pytest.mark.parametrize(
    ("number", "text", "code"),
    [
        (100, "-1", 4),
        (110, "abc", 2),
        (11, "", 2),
        (398, "5", 52),
        (398, "5000", 52),
        (999, "1", 53),
        (10, "99999", 52),
        (10, "1.5", 2),
        (13, "2", 52),
        (13, "-1", 2),
        (0, "-3", 52),
    ],
)
def test_refusals_have_the_firmwares_numbers(number: int, text: str, code: int) -> None:
    refused = Settings().changed(number, text)
    assert isinstance(refused, Refused)
    assert refused.code == code


def test_a_change_returns_new_settings() -> None:
    old = Settings()
    new = old.changed(110, " 4000.5")
    assert isinstance(new, Settings)
    assert (new[110], old[110]) == (4000.5, 500.0)


def test_every_default_is_in_range() -> None:
    for number, known in SETTINGS.items():
        off = known.zero and known.default == 0.0
        assert off or known.least <= known.default <= known.most, number


@pytest.mark.parametrize(
    ("number", "text", "printed"),
    [
        (110, "12a", "12.000"),
        (110, "40 00", "40.000"),
        (110, "1e3", "1.000"),
        (110, "99999999999", "1215750144.000"),
        (110, "0", "0.000"),
        (100, "0.0001", "0.00010"),
        (1, "1.0", "10"),
        (1, "+5", "5"),
        (26, "65536", "0"),
        (26, "99999999999", "51711"),
        (9, "2", "0"),
        (17, "15", "8"),
        (22, "16", "0"),
        (41, "3", "7"),
        (701, "2", "3"),
        (394, "0.55", "0.6"),
    ],
)
def test_the_value_that_is_printed_after_a_change(number: int, text: str, printed: str) -> None:
    """Answers of the firmware to `$n=v` and `$n`."""
    after = Settings().changed(number, text)
    assert isinstance(after, Settings)
    assert SETTINGS[number].text(after[number]) == printed


def test_settings_that_change_with_another() -> None:
    settings = _after(Settings(), (22, "255"), (20, "1"), (40, "1"))
    assert (settings[22], settings[676], settings[20], settings[40]) == (255.0, 14.0, 1.0, 1.0)
    settings = _after(settings, (676, "15"))
    assert settings[22] == 127.0
    settings = _after(settings, (22, "0"))
    assert (settings[22], settings[20], settings[40]) == (16.0, 0.0, 0.0)


def _after(settings: Settings, *changes: tuple[int, str]) -> Settings:
    for number, text in changes:
        after = settings.changed(number, text)
        assert isinstance(after, Settings)
        settings = after
    return settings
