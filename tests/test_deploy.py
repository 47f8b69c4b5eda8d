"""Files for clusters, containers and CI: every command exists, every configuration is accepted."""

import json
import os
import re
import shlex
import subprocess
import sys
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
ROOT = FOLDER.parent
PAGES = ("docs/robots/mobile_scale.md", "docs/install.md")
DEADLINE = 300


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


def test_the_pages_name_every_file() -> None:
    text = "".join((ROOT / page).read_text() for page in PAGES)
    for file in FOLDER.iterdir():
        assert f"../deploy/{file.name})" in text, file.name


# ── container ──


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as instructions with their arguments; continued lines are joined."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(name, " ".join(rest.split())) for name, _, rest in (x.partition(" ") for x in lines)]


def last(name: str) -> str:
    return [rest for each, rest in instructions() if each == name][-1]


def test_the_dockerfile_keeps_the_rules_of_small_safe_images() -> None:
    names = {name for name, _ in instructions()}
    assert names <= {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "EXPOSE",
                     "HEALTHCHECK", "ENTRYPOINT", "CMD"}  # fmt: skip
    for name, rest in instructions():
        if name == "FROM":
            assert re.match(r"\S+:(?!latest)\S+", rest), rest
        if name == "RUN":
            assert "pip install" not in rest or "--no-cache-dir -c constraints.txt" in rest
            assert "sudo" not in rest
        if name == "WORKDIR":
            assert rest.startswith("/")
    order = [name for name, _ in instructions()]
    after_warm = [n for n, rest in instructions() if n == "RUN" and "understudy warm" in rest]
    assert after_warm
    assert last("USER") not in ("root", "0")
    assert order.index("USER") > max(i for i, name in enumerate(order) if name == "RUN")


def test_the_dockerfile_copies_what_is_there_and_not_ignored() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"]
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert set(sources) <= set(kept)
            assert all((ROOT / source).exists() for source in sources)


def test_the_container_runs_a_cell_that_is_checked() -> None:
    words = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
    options = parse_command(words)
    cell = FOLDER / options["cell"]
    config = read_config(cell.read_text(), str(cell))
    hmi = config.head.hmi
    assert hmi is not None
    assert str(hmi.port) in last("EXPOSE").split()
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    service = compose["services"]["cell"]
    assert parse_command(["understudy", *service["command"]])["cell"] == options["cell"]
    inside = {int(each.rsplit(":", 1)[1]) for each in service["ports"]}
    assert inside == {int(port) for port in last("EXPOSE").split()}
    assert all(each.startswith("127.0.0.1:") for each in service["ports"])
    nats = config.endpoints()["nats"]
    assert isinstance(nats, Config)
    assert [address.split("/")[2] for address in nats.servers] == ["nats:4222"]
    assert service["depends_on"]["nats"] == {"condition": "service_healthy"}
    assert set(compose["volumes"]) == {"nats"}


def test_the_container_is_asked_for_its_health() -> None:
    command = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    script = Path(command[-1]).name
    assert f"deploy/{script}" in "".join(rest for name, rest in instructions() if name == "COPY")
    text = (FOLDER / script).read_text()
    compile(text, script, "exec")
    assert "/health" in text
    assert "UNDERSTUDY_HMI_TOKEN" in text


def test_the_development_container_calls_targets_of_make() -> None:
    found = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    targets = re.findall(r"^(\S+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    program, target = shlex.split(found["postCreateCommand"])
    assert program == "make"
    assert target.replace(".venv", "$(VENV)") in targets
    assert not found["image"].endswith("latest")


# ── CI ──


def understudy_lines(text: str) -> list[list[str]]:
    """The calls of `understudy` in a shell script, with a value in place of each variable."""
    text = text.replace("\\\n", " ").replace('"$@"', "part.gcode")
    found = re.findall(r"^\s*(?:- )?(?:run: )?(understudy .*)$", text, re.MULTILINE)
    lines = [re.sub(r"\$\{UNDERSTUDY_RUN_OPTIONS:-\}.*", "--ephemeral", line) for line in found]
    return [shlex.split(re.sub(r"\$\{?\w+\}?", "a", line)) for line in lines]


@pytest.mark.parametrize("file", ["deploy/ci.sh", "action.yml"])
def test_every_call_in_the_files_for_ci_is_a_real_command(file: str) -> None:
    lines = understudy_lines((ROOT / file).read_text())
    assert lines
    for words in lines:
        parse_command(words)


def test_the_action_gives_its_inputs_to_the_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = action["runs"]["steps"]
    text = yaml.safe_dump(steps)
    for name, given in action["inputs"].items():
        assert given["description"]
        assert f"inputs.{name} " in text, name
    runs = [step["run"] for step in steps if "run" in step]
    # An input inside a script would be run as code.
    assert not any("${{" in run for run in runs)
    assert [run.split()[2] for run in runs if "ci.sh" in run] == ["validate", "with-cell"]
    [upload] = [step for step in steps if "upload-sarif" in step.get("uses", "")]
    [validate] = [step for step in steps if step.get("name") == "Validate"]
    folder = validate["env"]["UNDERSTUDY_REPORTS"]
    assert upload["with"]["sarif_file"] == f"{folder}/understudy.sarif"


def ci_script(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    env = {**os.environ, "PATH": os.pathsep.join(paths), "XDG_RUNTIME_DIR": str(folder)}
    env["UNDERSTUDY_RUN_OPTIONS"] = "--ephemeral --rate max"
    return subprocess.run(
        ["sh", str(FOLDER / "ci.sh"), *words],
        cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a cell of one text robot."""
    robot = "{kind: text_robot, faces: {text_tcp: {port: 0}}}"
    (tmp_path / "cell.yaml").write_text(f"robots:\n  bench: {robot}\n")
    return tmp_path


def test_the_script_checks_cell_and_program(project: Path) -> None:
    (project / "moves.txt").write_text("MOVE_ABS 100,0,150,0,0,0\nMOVE_ABS 100\n")
    done = ci_script(project, "validate", "cell.yaml", "moves.txt")
    assert done.returncode == 1, done.stderr
    report = json.loads((project / "understudy.sarif").read_text())
    [result] = report["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    assert (project / "understudy.xml").exists()


def test_the_script_runs_a_command_beside_a_cell(project: Path) -> None:
    """The command talks to the robot; its exit code is that of the script."""
    talk = """
import json, os, socket, sys
ready = json.load(open(os.environ["UNDERSTUDY_READY_FILE"]))
host, _, port = ready["endpoints"]["bench.text_tcp"].rpartition("/")[2].rpartition(":")
with socket.create_connection((host, int(port))) as robot:
    robot.sendall(b"HOME\\n")
    robot.shutdown(socket.SHUT_WR)
    print(robot.makefile().read(), end="")
sys.exit(7)
"""
    (project / "talk.py").write_text(talk)
    done = ci_script(project, "with-cell", "cell.yaml", sys.executable, "talk.py")
    assert (done.returncode, done.stdout) == (7, "OK Homing completed\n"), done.stderr


def test_the_script_names_its_steps() -> None:
    done = ci_script(ROOT, "polish", "cell.yaml")
    assert done.returncode == 2
    assert "ci.sh validate CELL" in done.stderr
