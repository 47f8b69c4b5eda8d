"""The files of deploy/: every command is one that exists, every configuration is accepted."""

import re
import shlex
import subprocess
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from understudy.cli import load
from understudy.config import read_config
from understudy.config.shards import parse_shard, with_robots, with_shard
from understudy.wire.nats import Config
from understudy.wire.nats.server import needed_binary

FOLDER = Path(__file__).parents[1] / "deploy"
PAGE = FOLDER.parent / "docs/robots/mobile_scale.md"


def parse_command(words: list[str]) -> dict[str, Any]:
    """The options and arguments of `understudy COMMAND …` as the program reads them."""
    program, name, *rest = words
    assert Path(program).name == "understudy"
    found: dict[str, Any] = load(name).make_context(name, rest).params
    return found


def shard_of(options: dict[str, Any], cell: str) -> int:
    """How many robots the shard of this command has."""
    shard = parse_shard(options["shard"])
    whole = with_robots(read_config(cell, "fleet.yaml"), int(options["robots"]), shard.of)
    return len(with_shard(whole, shard).robots)


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))


def manifest(kind: str, name: str) -> dict[str, Any]:
    named = {(each["kind"], each["metadata"]["name"]): each for each in manifests()}
    return named[kind, name]


def test_the_shards_of_the_manifest_are_real_commands() -> None:
    spec = manifest("StatefulSet", "shard")["spec"]
    [container] = spec["template"]["spec"]["containers"]
    cell = manifest("ConfigMap", "fleet")["data"]["fleet.yaml"]
    first, count = spec["ordinals"]["start"], spec["replicas"]
    robots = 0
    for ordinal in range(first, first + count):
        words = [*container["command"], *container["args"]]
        options = parse_command([word.replace("$(SHARD)", str(ordinal)) for word in words])
        robots += shard_of(options, cell)
    assert robots == int(options["robots"])
    assert str(options["ready_file"]) in container["readinessProbe"]["exec"]["command"]
    assert container["env"][0]["name"] == "SHARD"


def test_the_cell_of_the_manifest_names_the_servers_of_the_manifest() -> None:
    spec = manifest("StatefulSet", "nats")["spec"]
    cell = manifest("ConfigMap", "fleet")["data"]["fleet.yaml"]
    wire = read_config(cell, "fleet.yaml").endpoints()["nats"]
    assert isinstance(wire, Config)
    names = [f"nats-{number}.{spec['serviceName']}" for number in range(spec["replicas"])]
    assert list(wire.servers) == [f"nats://{name}:4222" for name in names]
    assert wire.replicas == spec["replicas"]
    routes = re.findall(r'"nats://(\S+):6222"', (FOLDER / "nats-cluster.conf").read_text())
    assert routes == names
    command = spec["template"]["spec"]["containers"][0]["command"]
    assert Path(command[-1]).name == "nats-cluster.conf"


def test_every_selector_of_the_manifest_selects_pods() -> None:
    sets = (manifest("StatefulSet", name) for name in ("nats", "shard"))
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in sets]
    for each in manifests():
        selector = each.get("spec", {}).get("selector")
        if selector is not None:
            assert selector.get("matchLabels", selector) in labels


def test_the_unit_starts_a_real_command() -> None:
    text = (FOLDER / "understudy-shard@.service").read_text()
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    numbers = dict(re.findall(r"^#\s+([A-Z]+)=(\d+)$", text, re.MULTILINE))
    assert unit["Service"]["EnvironmentFile"] in text.partition("[Unit]")[0]
    line = unit["Service"]["ExecStart"].replace("%i", "2")
    for name, value in numbers.items():
        line = line.replace(f"${{{name}}}", value)
    assert "$" not in line
    assert "%" not in line
    options = parse_command(shlex.split(line))
    cell = manifest("ConfigMap", "fleet")["data"]["fleet.yaml"]
    assert shard_of(options, cell) == int(numbers["ROBOTS"]) // int(numbers["SHARDS"])


@pytest.mark.parametrize("name", ["nats-cluster.conf", "nats-leaf.conf"])
def test_nats_accepts_the_configuration(name: str, tmp_path: Path) -> None:
    env = {"NATS_NAME": "nats-0", "NATS_STORE": str(tmp_path)}
    done = subprocess.run(
        [needed_binary(), "-t", "-c", str(FOLDER / name)],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "is valid" in done.stderr


def test_the_page_names_every_file() -> None:
    text = PAGE.read_text()
    for file in FOLDER.iterdir():
        assert f"(../../deploy/{file.name})" in text, file.name
