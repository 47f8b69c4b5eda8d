"""Environment files that are changed and keep their comments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from understudy.config.document import parse
from understudy.config.environment_file import environment_of, with_environment
from understudy.errors import ConfigError
from understudy.space.model.environment import EnvironmentConfig, FixtureConfig, ObjectConfig
from understudy.space.model.shapes import ObjectType

FILE = """\
# the cell of hall 3
objects:
  # measured by Lan, 12 May
  - {name: table, type: box, position_mm: [600, 0, 25], dimensions_mm: [600, 900, 50]}  # oak
  - name: post        # the crane
    type: cylinder
    position_mm: [1, 2, 3]  # by eye
    radius_mm: 40
    height_mm: 900

  # below the window
  - {name: ball, type: sphere, radius_mm: 50}
# nothing may reach into these
zones:
  - {name: door, type: box, dimensions_mm: [100, 800, 2000]}
"""
CELL = """\
name: mine  # of hall 3
robots:
  arm: {kind: arm, model: g60}
environment:
  objects:
    - {name: table, type: box, position_mm: [600, 0, 25], dimensions_mm: [600, 900, 50]}
# rules
scenario: {rules: {}}
"""
BOX = ObjectConfig(
    name="box 1", type=ObjectType.BOX, position_mm=(1.5, 0, 0), dimensions_mm=(10.0, 10.0, 10.0)
)


def changed(text: str, keys: tuple[str, ...] = (), **groups: object) -> str:
    there = environment_of(parse(text, "e.yaml"), keys)
    return with_environment(text, "e.yaml", keys, structs.replace(there, **groups))


def objects(text: str, keys: tuple[str, ...] = ()) -> tuple[ObjectConfig, ...]:
    return environment_of(parse(text, "e.yaml"), keys).objects


def test_a_moved_object_changes_its_own_numbers_only() -> None:
    table, post, ball = objects(FILE)
    moved = structs.replace(post, position_mm=(10.0, 2.25, 3.0))
    turned = structs.replace(ball, rotation_deg=(0.0, 0.0, 90.0))
    text = changed(FILE, objects=(table, moved, turned))
    expected = FILE.replace("[1, 2, 3]", "[10, 2.25, 3]")
    expected = expected.replace("radius_mm: 50}", "radius_mm: 50, rotation_deg: [0, 0, 90]}")
    assert text == expected


def test_added_and_removed_objects_leave_the_comments_of_the_others() -> None:
    _, post, ball = objects(FILE)
    text = changed(FILE, objects=(post, ball, BOX))
    lost = FILE.splitlines()[3]
    assert lost not in text
    rest = FILE.replace(lost + "\n", "")
    row = '  - {name: "box 1", type: box, position_mm: [1.5, 0, 0], dimensions_mm: [10, 10, 10]}\n'
    assert text == rest.replace("# nothing", row + "# nothing")


@pytest.mark.parametrize(
    "text", ["", "# empty\n", "objects: []\n", "zones: []", "{objects: [], zones: []}\n"]
)
def test_an_object_is_added_to_a_file_without_any(text: str) -> None:
    made = changed(text, objects=(BOX,))
    assert objects(made) == (BOX,)
    assert made.startswith("# empty") == text.startswith("# empty")
    assert objects(changed(made, objects=())) == ()


def test_the_section_of_a_cell_file_is_changed_and_nothing_else() -> None:
    (table,) = objects(CELL, ("environment",))
    fixture = FixtureConfig(name="rack", urdf="rack.urdf", joints_deg={"hinge": 5.0})
    text = changed(CELL, ("environment",), objects=(table, BOX), fixtures=(fixture,))
    found = environment_of(parse(text, "cell.yaml"), ("environment",))
    assert (found.objects, found.fixtures) == ((table, BOX), (fixture,))
    kept = [line for line in CELL.splitlines() if line not in text.splitlines()]
    assert kept == []
    without = changed(CELL.split("environment:")[0], ("environment",), objects=(BOX,))
    assert objects(without, ("environment",)) == (BOX,)


def test_a_file_that_repeats_values_is_refused_or_right() -> None:
    text = "objects:\n  - &a {name: a, type: sphere, radius_mm: 5}\n  - {<<: *a, name: b}\n"
    a, b = objects(text)
    with pytest.raises(ConfigError, match="by hand"):
        changed(text, objects=(structs.replace(a, radius_mm=6.0), b))
    assert objects(changed(text, objects=(a,))) == (a,)


NAME = st.text(min_size=1, max_size=5).filter(str.isprintable)
NAMES = st.lists(st.sampled_from("abcde") | NAME, unique=True, max_size=4)
NUMBER = st.floats(-9000, 9000).map(lambda value: round(value, 6) + 0.0)


@st.composite
def environments(draw: st.DrawFn) -> EnvironmentConfig:
    def some() -> tuple[ObjectConfig, ...]:
        return tuple(
            ObjectConfig(
                name=name,
                type=ObjectType.SPHERE,
                radius_mm=draw(NUMBER),
                position_mm=draw(st.tuples(NUMBER, NUMBER, NUMBER)),
            )
            for name in draw(NAMES)
        )

    return EnvironmentConfig(objects=some(), zones=some())


@given(st.sampled_from([FILE, CELL, "", '{"objects": []}']), environments(), environments())
def test_any_environment_replaces_any_other(
    text: str, first: EnvironmentConfig, second: EnvironmentConfig
) -> None:
    keys = ("environment",) if text == CELL else ()
    for wanted in (first, second):
        text = with_environment(text, "e.yaml", keys, wanted)
        found = environment_of(parse(text, "e.yaml"), keys)
        assert {each.name: each for each in found.objects} == {e.name: e for e in wanted.objects}
        assert {each.name: each for each in found.zones} == {e.name: e for e in wanted.zones}
