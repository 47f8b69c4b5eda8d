"""Mobile robots in cell files: their files, the robots that a cell includes, and their server."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.config import CellConfig, load_config, read_config
from understudy.errors import ConfigError
from understudy.wire.nats import Config as Nats

EXAMPLE = json.loads(Path(__file__).with_name("robot_config.json").read_text())


class Folder:
    """A folder with a cell file and robot files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def robot(self, name: str, robot_id: str = "robot-1", **sections: Any) -> None:
        document = EXAMPLE | sections
        document["identity"] = EXAMPLE["identity"] | {"robotId": robot_id}
        document.pop("nats", None)
        if "nats" in sections:
            document["nats"] = sections["nats"]
        (self.path / name).write_text(json.dumps(document, indent=1))

    def load(self, text: str) -> CellConfig:
        (self.path / "cell.yaml").write_text(text)
        return load_config(str(self.path / "cell.yaml"))

    def error(self, text: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(text)
        return str(caught.value).replace(f"{self.path}/", "")

    def nats(self, text: str) -> Nats:
        wire = self.load(text).endpoints()["nats"]
        assert isinstance(wire, Nats)
        return wire


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


ONE = "robots: {a: {kind: mobile, file: r.json}}\n"


def test_the_name_in_the_cell_is_the_robot_id(folder: Folder) -> None:
    folder.robot("r.json", "robot-9")
    cell = build_cell(folder.load("robots: {a: {kind: mobile, file: r.json, pose: [1, 2, 90]}}"))
    assert cell.components["a"].status(0).pose == pytest.approx((1.0, 2.0, 1.5707963))
    assert list(cell.faces) == ["nats"]


def test_a_cell_includes_robot_files(folder: Folder) -> None:
    folder.robot("one.json", "robot-1")
    folder.robot("two.json", "robot-2")
    config = folder.load("include: {robots: [one.json, two.json]}")
    assert list(config.robots) == ["robot-1", "robot-2"]
    assert {robot.kind for robot in config.robots.values()} == {"mobile"}


def test_two_robots_with_one_name_are_an_error(folder: Folder) -> None:
    folder.robot("one.json", "a")
    text = "robots: {a: {kind: text_robot}}\ninclude: {robots: [one.json]}"
    assert folder.error(text) == (
        "cell.yaml:2: include.robots.0: the cell has a robot of this name already (got 'a')"
    )


def test_a_cell_without_robots_is_an_error_as_before(folder: Folder) -> None:
    assert folder.error("seed: 1").startswith("cell.yaml:1: robots: this key is missing")


def test_a_mistake_in_a_robot_file_is_named_with_its_line(folder: Folder) -> None:
    folder.robot("r.json", streams={"heartBeatHz": 1})
    line = (folder.path / "r.json").read_text().splitlines().index('  "heartBeatHz": 1') + 1
    for text in (ONE, "include: {robots: [r.json]}"):
        message = folder.error(text)
        assert f"r.json:{line}: " in message
        assert "streams.heartBeatHz: unknown key" in message
        assert "did you mean 'heartbeatHz'?" in message


def test_a_file_that_is_missing_or_no_robot_file_is_named(folder: Folder) -> None:
    assert "r.json" in folder.error(ONE)
    assert "cell.yaml:1: robots.a.file: unknown robot file" in folder.error(
        "robots: {a: {kind: mobile, file: arm.urdf}}"
    )


def test_a_file_beside_the_cell_goes_before_a_shipped_one(folder: Folder) -> None:
    text = "robots: {a: {kind: mobile, file: amr.json}}"
    shipped = folder.load(text).digest
    folder.robot("amr.json")
    assert folder.load(text).digest != shipped


def test_the_digest_covers_the_robot_files_and_the_markers(folder: Folder) -> None:
    folder.robot("r.json")
    before = folder.load(ONE).digest
    assert folder.load(ONE).digest == before
    assert folder.load(ONE + "fleet: {markers: [{code: A, x_m: 1, y_m: 2}]}").digest != before
    folder.robot("r.json", streams={"stateHz": 5})
    assert folder.load(ONE).digest != before


# ── the server ──


def test_the_cell_has_its_own_server_by_default(folder: Folder) -> None:
    folder.robot("r.json")
    assert folder.nats(ONE) == Nats()
    assert folder.nats(ONE + "nats: {port: 0, durable: mine}") == Nats(port=0, durable="mine")


def test_a_mistake_in_the_keys_of_the_server_is_named(folder: Folder) -> None:
    folder.robot("r.json")
    assert "cell.yaml:2: nats.prot: unknown key (got 'prot')" in folder.error(
        ONE + "nats: {prot: 4222}"
    )


SERVER = {"servers": ["nats://10.0.0.5:4222"], "token": "t", "jetStream": {"streamIn": "IN"}}


def test_without_the_key_the_section_of_the_robot_files_counts(folder: Folder) -> None:
    folder.robot("r.json", nats=SERVER | {"tls": {"caFile": "ca.pem"}})
    found = folder.nats(ONE)
    assert found.servers == ("nats://10.0.0.5:4222",)
    assert (found.token, found.stream_in, found.stream_out) == ("t", "IN", "ROBOT_OUT")
    assert found.tls is not None
    assert found.tls.ca_file == str(folder.path / "ca.pem")
    assert folder.nats(ONE + "nats: {port: 4333}") == Nats(port=4333)


def test_keys_of_the_server_that_do_not_fit_together_are_named(folder: Folder) -> None:
    folder.robot("r.json")
    message = folder.error(ONE + "nats: {servers: ['nats://h:1'], token: t, creds_file: c}")
    assert message == "cell.yaml:2: nats: only one of creds_file, nkey_file, token can be given"


def test_a_wrong_server_in_a_robot_file_is_named_there(folder: Folder) -> None:
    folder.robot("r.json", nats={"servers": ["http://10.0.0.5:4222"]})
    assert re.match(r"r\.json:\d\d+: nats\.servers\.0: this does not fit", folder.error(ONE))


def test_cells_with_other_robots_have_other_consumers_on_a_given_server(folder: Folder) -> None:
    """Each message is given to one process of a consumer only."""
    folder.robot("r.json")
    cell = "robots: {{{}: {{kind: mobile, file: r.json}}}}\n"
    given = "nats: {servers: ['nats://10.0.0.5:4222']}"
    names = [folder.nats(cell.format(robot) + given).durable for robot in ("a", "b", "a")]
    assert names[0] == names[2] != names[1]
    assert folder.nats(cell.format("a") + given.replace("{", "{durable: d, ")).durable == "d"


def test_robot_files_with_different_servers_are_an_error(folder: Folder) -> None:
    folder.robot("one.json", "one", nats=SERVER)
    folder.robot("two.json", "two", nats=SERVER)
    folder.robot("other.json", "other", nats=SERVER | {"token": "another"})
    folder.robot("none.json", "none")
    assert folder.nats("include: {robots: [none.json, one.json, two.json]}").token == "t"
    message = folder.error("include: {robots: [one.json, two.json, other.json]}")
    assert re.match(r"other\.json:\d\d+: nats: two\.json names another NATS server", message)
    assert "the key nats in the cell file" in message


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("max_file_mb: 16, max_mb: 16", "two streams of 16 MB (max_mb) do not fit"),
        ("stream_in: A, stream_out: A", "stream_in and stream_out are both A; name two streams"),
        ("creds_file: a.creds", "creds_file is for given servers"),
        ("servers: ['nats://h:1'], token: t, nkey_file: n", "only one of creds_file, nkey_file"),
    ],
)
def test_settings_that_do_not_fit_together_are_named(
    folder: Folder, keys: str, problem: str
) -> None:
    folder.robot("r.json")
    text = f"nats: {{{keys}}}\ninclude: {{robots: [r.json]}}"
    assert folder.error(text).startswith(f"cell.yaml:1: nats: {problem}")


# ── many ──


def test_a_cell_has_more_mobile_robots_than_others(folder: Folder) -> None:
    folder.robot("r.json")
    rows = "".join(f" r{n}: {{kind: mobile, file: r.json}}\n" for n in range(501))
    assert len(folder.load("robots:\n" + rows).robots) == 501


def test_ids_that_are_no_word_of_a_subject_are_refused(folder: Folder) -> None:
    for wrong in ("a.b", "a b", "*", ">"):
        folder.robot("r.json", wrong)
        assert "identity.robotId" in folder.error("include: {robots: [r.json]}")


def test_keys_of_a_face_that_do_not_fit_together_are_named() -> None:
    robot = "{kind: mobile, file: amr.json, faces: {vda5050: {password: secret}}}"
    with pytest.raises(ConfigError, match=r"faces\.vda5050.*password needs username"):
        read_config(f"robots:\n  robot-1: {robot}\n", "cell.yaml")
