"""An error in a cell file is reported with file, line, key path, value and what is allowed."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Meta

from understudy import registry
from understudy.app.build import build_cell, load_cell
from understudy.config import CellConfig, load_config, read_config, shipped_cells
from understudy.config.document import parse
from understudy.config.typed import read
from understudy.errors import ConfigError

GOOD = """\
description: a bench
seed: 4
robots:
  bench:
    kind: text_robot
    move_abs_ms: 300
    faces:
      text_tcp: {port: 5001}
scenario:
  rules:
    lost: {fault: communication_timeout, on: bench.text_tcp, probability: 0.05}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cell.yaml"


def put_together(file: Path, text: str | bytes) -> CellConfig:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    config = load_config(str(file))
    build_cell(config)
    return config


def test_a_valid_file_is_read(file: Path) -> None:
    config = put_together(file, GOOD)
    bench = config.robots["bench"]
    assert (config.name, config.head.seed, config.head.poll_step_ms) == ("cell", 4, 10.0)
    assert (bench.kind, bench.config.move_abs_ms, bench.config.home_ms) == ("text_robot", 300, 1000)
    assert bench.faces["text_tcp"].wires[""].port == 5001
    assert config.head.scenario.rules["lost"].probability == 0.05


def test_a_kind_with_a_former_name_is_read_and_noted(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = put_together(file, GOOD.replace("kind: text_robot", "kind: point"))
    assert config.robots["bench"].kind == "text_robot"
    assert config.digest == put_together(file, GOOD).digest
    assert caplog.messages == ["kind: point is now called text_robot"]


def test_a_dialect_with_a_former_name_is_read_and_noted(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cell = "robots:\n  g60:\n    kind: arm\n    dialect: {}\n"
    config = put_together(file, cell.format("seed"))
    assert config.robots["g60"].config.dialect == "arm"
    assert config.digest == put_together(file, cell.format("arm")).digest
    assert caplog.messages == ["dialect: seed is now called arm"]


# Old text in the good file → new text; then what the message says after the file's name.
BROKEN = {
    "unknown key at the top": (
        ("seed: 4", "sede: 4"),
        ":2: sede: unknown key (got 'sede'); allowed: robots, include, description, seed, "
        "strict, controller, poll_step_ms, token, control, state, hmi, scenario, environment, "
        "parts, part_rules, links, devices, simulation, collision, visualization, virtual_io, "
        "course, demo, epoch, fit, fleet, nats; did you mean 'seed'?",
    ),
    "unknown key of a robot": (
        ("move_abs_ms", "move_abs"),
        ":6: robots.bench.move_abs: unknown key (got 'move_abs'); allowed: kind, faces, real, "
        "program, start_mm_deg, home_mm_deg, move_abs_ms, move_rel_ms, home_ms, envelope_mm, "
        f"load_percent, temperature_c, {', '.join(registry.TABLES['devices'])}; "
        "did you mean 'move_abs_ms'?",
    ),
    "key in capitals": (
        ("seed: 4", "SEED: 4"),
        ":2: SEED: unknown key (got 'SEED'); allowed: robots, include, description, seed, "
        "strict, controller, poll_step_ms, token, control, state, hmi, scenario, environment, "
        "parts, part_rules, links, devices, simulation, collision, visualization, virtual_io, "
        "course, demo, epoch, fit, fleet, nats; did you mean 'seed'?",
    ),
    "unknown key of a face": (
        ("port: 5001", "prot: 5001"),
        ":8: robots.bench.faces.text_tcp.prot: unknown key (got 'prot'); allowed: host, port, "
        "stalled_after_s, max_clients, max_clients_per_address, idle_yields_after_s, pty; "
        "did you mean 'port'?",
    ),
    "unknown key of a rule": (
        ("probability", "probabilty"),
        ":11: scenario.rules.lost.probabilty: unknown key (got 'probabilty'); allowed: fault, on, "
        "probability, when, times, at_s, every_s, from_s, until_s, parameters; "
        "did you mean 'probability'?",
    ),
    "unknown kind of robot": (
        ("kind: text_robot", "kind: text_robo"),
        ":5: robots.bench.kind: unknown kind of robot (got 'text_robo'); allowed: ",
    ),
    "unknown kind of face": (
        ("text_tcp: {", "texttcp: {"),
        ":8: robots.bench.faces.texttcp: unknown kind of face (got 'texttcp'); allowed: ",
    ),
    "unknown target of a rule": (
        ("on: bench.text_tcp", "on: bench.tcp"),
        ":11: scenario.rules.lost.on: unknown robot or face (got 'bench.tcp'); allowed: bench, "
        "bench.text_tcp; did you mean 'bench.text_tcp'?",
    ),
    "unknown fault": (
        ("communication_timeout", "communication_timout"),
        ":11: scenario.rules.lost.fault: unknown fault (got 'communication_timout'); allowed: ",
    ),
    "missing key": (
        ("kind: text_robot", "home_ms: 5"),
        ":4: robots.bench.kind: this key is missing; allowed: a text",
    ),
    "below the range": (
        ("seed: 4", "seed: -1"),
        ":2: seed: out of range (got -1); allowed: a whole number ≥ 0 and < 4.61169e+18",
    ),
    "above the range": (
        ("port: 5001", "port: 65536"),
        ":8: robots.bench.faces.text_tcp.port: out of range (got 65536); allowed: a whole number "
        "≥ 0 and ≤ 65535",
    ),
    "probability over one": (
        ("0.05", "1.05"),
        ":11: scenario.rules.lost.probability: out of range (got 1.05); allowed: a number ≥ 0 and "
        "≤ 1",
    ),
    "number too large for any range": (
        ("0.05", "1" + "0" * 400),
        ":11: scenario.rules.lost.probability: this does not fit",
    ),
    "not a number": (
        ("0.05", ".nan"),
        ":11: scenario.rules.lost.probability: this does not fit (got nan); allowed: a number",
    ),
    "text for a number": (
        ("seed: 4", "seed: four"),
        ":2: seed: this does not fit (got 'four'); allowed: a whole number",
    ),
    "fraction for a whole number": (
        ("seed: 4", "seed: 4.5"),
        ":2: seed: this does not fit (got 4.5); allowed: a whole number",
    ),
    "truth for a number": (
        ("seed: 4", "seed: true"),
        ":2: seed: this does not fit (got True); allowed: a whole number",
    ),
    "number for a text": (
        ("a bench", "1"),
        ":1: description: this does not fit (got 1); allowed: a text",
    ),
    "list for a mapping": (
        ("{port: 5001}", "[5001]"),
        ":8: robots.bench.faces.text_tcp: this does not fit (got [5001]); allowed: a mapping or "
        "nothing",
    ),
    "tuple of another length": (
        ("move_abs_ms: 300", "home_mm_deg: [0, 0, 100]"),
        ":6: robots.bench.home_mm_deg: this does not fit (got [0, 0, 100]); allowed: a list of 6: "
        "a number, a number,",
    ),
    "wrong item of a tuple": (
        (
            "move_abs_ms: 300",
            "home_mm_deg:\n      - 0\n      - 0\n      - high\n" + "      - 0\n" * 3,
        ),
        ":9: robots.bench.home_mm_deg.2: this does not fit (got 'high'); allowed: a number",
    ),
    "robot without a body": (
        ("kind: text_robot\n    move_abs_ms: 300\n    faces:\n      text_tcp: {port: 5001}", ""),
        ":4: robots.bench: this does not fit; allowed: a mapping",
    ),
    "name that is no name": (
        ("  bench:\n", "  9bench:\n"),
        ":4: robots.9bench: this does not fit (got '9bench'); allowed: a text like ",
    ),
    "name with a line break": (
        ("  bench:\n", '  "bench\\n":\n'),
        ":4: robots.bench\n: this does not fit (got 'bench\\n'); allowed: a text like ",
    ),
    "name of a part of every cell": (
        ("  bench:\n", "  scenario:\n"),
        ":4: robots.scenario: every cell has a part of this name; choose another",
    ),
    "key that stands twice": (
        ("seed: 4", "seed: 4\nseed: 5"),
        ":3: seed: the key stands here twice, first in line 2",
    ),
    "deep key that stands twice": (
        ("kind: text_robot", "kind: text_robot\n    kind: text_robot"),
        ":6: robots.bench.kind: the key stands here twice, first in line 5",
    ),
    "what a robot checks itself": (
        ("move_abs_ms: 300", "envelope_mm:\n      y: [5, -5]"),
        ":7: robots.bench.envelope_mm.y: home is outside the envelope, or the envelope is empty "
        "(got [5.0, -5.0]); allowed: lower bound first",
    ),
    "not YAML": (("seed: 4", "seed: [4"), ":3: not YAML: "),
    "tab": (("seed: 4", "\tseed: 4"), ":2: not YAML: "),
    "unknown tag": (("seed: 4", "seed: !secret 4"), ":2: not YAML: could not determine"),
    "two documents": (("seed: 4", "---\nseed: 4"), ":2: not YAML: but found another document"),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_file_is_reported_with_line_key_and_allowed_values(
    file: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in GOOD
    with pytest.raises(ConfigError, match="^" + re.escape(f"{file}{message}")):
        put_together(file, GOOD.replace(*change, 1))


NO_CELL = {
    "empty": (b"", ": robots: this key is missing"),
    "only a comment": (b"# nothing\n", ": robots: this key is missing"),
    "null": (b"~\n", ":1: robots: this key is missing"),
    "text": (b"hello\n", ":1: this does not fit; allowed: a mapping"),
    "list": (b"- a\n- b\n", ":1: this does not fit; allowed: a mapping"),
    "binary": (b"\x89PNG\r\n\x1a\n\xff", ": cannot be read: not UTF-8 text"),
    "control characters": (b"seed: 1\x00\x01\n", ": not YAML: "),
    "refers to itself": (b"robots: &r\n  a: *r\n", ":1: robots.a: this contains itself"),
    "refers to more than anybody wrote": (
        "".join(
            f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9 if n else 'x' * 9)}]\n" for n in range(9)
        ).encode(),
        ": holds more than 200000 values",
    ),
    "bottomless": (b"[" * 2000, ": not YAML: nested too deeply"),
    "a tag with nothing to it": (b"seed: !!int ''\n", ": not YAML: "),
    "a truth that is none": (b"seed: !!bool perhaps\n", ": not YAML: "),
    "a moment that is none": (b"seed: !!timestamp soon\n", ":1: not YAML: "),
}


@pytest.mark.parametrize(("content", "message"), NO_CELL.values(), ids=NO_CELL)
def test_a_file_that_is_not_a_cell_is_an_error(file: Path, content: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(f"{file}{message}")):
        put_together(file, content)


def test_a_path_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for name, problem in {
        "text_robt": "unknown cell .* did you mean 'text_robot'",
        str(tmp_path): "cannot be read: Is a directory",
        str(tmp_path / "none.yaml"): "none.yaml: cannot be read: No such file",
        "x" * 5000: "unknown cell",
    }.items():
        with pytest.raises(ConfigError, match=problem):
            load_config(name)


@pytest.mark.parametrize("name", shipped_cells())
def test_every_shipped_cell_is_valid(name: str) -> None:
    build_cell(load_config(name))


# ── YAML as people expect it ──


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("true", True),
        ("1e3", 1000.0),
        ("+1.5E-1", 0.15),
        (".5", 0.5),
        ("-7", -7),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
    ],
)
def test_scalars_are_read_as_in_yaml_1_2(written: str, meant: object) -> None:
    value = parse(f"key: {written}", "f").value["key"]
    assert value == meant
    assert type(value) is type(meant)


def test_on_is_a_text_key_and_1e3_is_a_number(file: Path) -> None:
    text = GOOD.replace("0.05", "5e-2").replace("seed: 4", "poll_step_ms: 1e3")
    config = put_together(file, text)
    assert config.head.scenario.rules["lost"].on == "bench.text_tcp"
    assert config.head.scenario.rules["lost"].probability == 0.05
    assert config.head.poll_step_ms == 1000.0


# ── what a configuration is ──


def test_the_digest_depends_on_the_cell_and_not_on_its_ports(file: Path) -> None:
    digest = put_together(file, GOOD).digest
    for same in (("5001", "5002"), ("a bench", "another bench"), ("0.05", "5e-2")):
        assert put_together(file, GOOD.replace(*same)).digest == digest
    others = [("seed: 4", "seed: 5"), ("300", "301"), ("0.05", "0.06"), ("bench", "banch")]
    digests = {put_together(file, GOOD.replace(*other)).digest for other in others}
    assert len(digests | {digest}) == 5


def test_a_given_seed_replaces_the_seed_of_the_file() -> None:
    assert load_config("text_robot", seed=9).head.seed == 9
    for seed in (-1, 1 << 62):
        with pytest.raises(ConfigError, match=r"seed: out of range"):
            load_config("text_robot", seed=seed)


def test_a_loaded_cell_answers() -> None:
    assert (
        load_cell("text_robot", seed=1).connect().ask(b"STOP\n") == b"OK Emergency stop executed\n"
    )


# ── whatever stands in it ──

KEYS = st.sampled_from(sorted({*re.findall(r"\w+", GOOD), "at_s", "emergency_stop"}))
KEYS |= st.text(max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def _read(text: str) -> None:
    with suppress(ConfigError):
        build_cell(read_config(text, "f.yaml"))


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_no_yaml_breaks_the_reader(value: object) -> None:
    _read(yaml.safe_dump(value, allow_unicode=True))


@given(st.text(alphabet=st.sampled_from("abon: {}[]!&*#-|>'\"\n\t1.e0x%@`,?~=<"), max_size=40))
@example("&a [*a]")
@example("? [a]\n: b")
@example("<<: 1")
def test_no_text_breaks_the_reader(text: str) -> None:
    _read(text)


@given(st.text(max_size=30))
def test_no_characters_break_the_reader(text: str) -> None:
    _read(text)


@given(st.data())
def test_no_change_of_a_good_file_breaks_the_reader(data: st.DataObject) -> None:
    value = yaml.safe_load(GOOD.replace("on:", "'on':"))
    place = data.draw(st.sampled_from(list(_places(value))))
    spot = value
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = data.draw(VALUES)
    _read(yaml.safe_dump(value))


def _places(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return []
    paths = [(*path, key) for key in value]
    return paths + [deep for key in value for deep in _places(value[key], (*path, key))]


@pytest.mark.parametrize("robot", ["{kind: kuka, io: {}}", "{kind: text_robot, io: {}}"])
def test_pins_need_a_controller_that_has_some(robot: str) -> None:
    config = read_config(f"robots:\n  a: {robot}\n", "cell.yaml")
    with pytest.raises(ConfigError, match=r"robots\.a\.io: there is no controller with pins"):
        build_cell(config)


def test_a_device_kind_cannot_take_over_a_key_of_a_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._registered["devices"], "faces", "understudy.devices.welder")
    config = read_config("robots:\n  a: {kind: text_robot, faces: {text_tcp: {}}}\n", "cell.yaml")
    assert list(config.robots["a"].faces) == ["text_tcp"]


# ── time of day ──


def test_simulated_time_begins_at_the_epoch_of_the_cell() -> None:
    text = "robots: {a: {kind: text_robot}}\nepoch: "
    assert read_config(text + "1970-01-01T00:00:01.5Z", "c.yaml").sections["epoch"] == 1_500_000_000
    assert read_config(text + "1970-01-01T02:00:00+02:00", "c.yaml").sections["epoch"] == 0
    assert read_config("robots: {a: {kind: text_robot}}", "c.yaml").sections == {}


@pytest.mark.parametrize("wrong", ["2026-01-01T00:00:00", "noon", "2026-13-01T00:00:00Z"])
def test_an_epoch_needs_a_date_and_a_time_zone(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"^c.yaml:2: epoch: .*2026-01-01T00:00:00Z"):
        read_config(f"robots: {{a: {{kind: text_robot}}}}\nepoch: {wrong}", "c.yaml")


def test_the_error_of_a_key_that_may_be_missing_is_that_of_its_value() -> None:
    with pytest.raises(ConfigError, match="out of range"):
        read(-1.0, Annotated[float, Meta(gt=0)] | None)
    with pytest.raises(ConfigError, match="this does not fit"):
        read(-1, Annotated[int, Meta(ge=0)] | str | None)
