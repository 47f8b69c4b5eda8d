"""The command table finds a command, checks role and parameters, and runs it."""

from typing import Any, Literal

import msgspec
import pytest
from msgspec import Struct
from tests.benches import Bench

from understudy.errors import Refused
from understudy.operator.table import Command, Commands
from understudy.ports.hmi import (
    BAD_PARAMETERS,
    BROKEN,
    NOT_ALLOWED,
    REFUSED,
    UNKNOWN_COMMAND,
    Later,
)


class Jump(Struct, frozen=True, forbid_unknown_fields=True):
    height: float
    times: int = 1
    mood: Literal["glad", "sad"] | bool = False


@pytest.fixture
def jumps() -> list[Jump]:
    return []


@pytest.fixture
def table(jumps: list[Jump]) -> Commands:
    return Commands(
        [
            Command("jump", "into the air", jumps.append, lambda: Jump),
            Command("look", "around", lambda _: {"seen": 3}, role="viewer"),
            Command("sulk", "will not", lambda _: Refused("no")),
            Command("faint", "will not either", lambda _: Refused("never", code=77)),
        ]
    )


def test_parameters_are_converted_to_their_types(table: Commands, jumps: list[Jump]) -> None:
    assert table.call("jump", {"height": 2}, "operator") is None
    assert jumps == [Jump(2.0, 1)]
    assert table.call("look", {}, "operator") == {"seen": 3}


@pytest.mark.parametrize(
    ("name", "parameters", "code", "says"),
    [
        (
            "jmup",
            {},
            UNKNOWN_COMMAND,
            "unknown command 'jmup'; there are: commands, faint, glance, jump, look, sulk",
        ),
        ("jmup", {}, UNKNOWN_COMMAND, "did you mean 'jump'?"),
        ("", {}, UNKNOWN_COMMAND, "unknown command ''"),
        ("jump", {}, BAD_PARAMETERS, "parameters: height, times, mood ('glad', 'sad')"),
        ("jump", {"height": "2"}, BAD_PARAMETERS, "height: this does not fit (got '2')"),
        ("jump", {"height": 2, "times": 1.5}, BAD_PARAMETERS, "times: this does not fit (got 1.5)"),
        ("jump", {"height": 2, "width": 1}, BAD_PARAMETERS, "width: unknown key"),
        ("look", {"at": "me"}, BAD_PARAMETERS, "parameters: none"),
        ("sulk", {}, REFUSED, "no"),
        ("faint", {}, 77, "never"),
    ],
)
def test_wrong_commands_are_refused_with_a_code(
    table: Commands, jumps: list[Jump], name: str, parameters: dict[str, Any], code: int, says: str
) -> None:
    refused = table.call(name, parameters, "operator")
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert says in refused.reason
    assert jumps == []


@pytest.mark.parametrize("role", ["viewer", "stranger", ""])
def test_an_operator_command_is_refused_for_other_roles(
    table: Commands, jumps: list[Jump], role: str
) -> None:
    refused = table.call("jump", {"height": 2}, role)
    assert refused == Refused(f"jump needs role operator, not {role}", code=NOT_ALLOWED)
    assert jumps == []


def test_a_query_is_allowed_for_viewers_and_refused_for_unknown_roles(table: Commands) -> None:
    assert table.call("look", {}, "viewer") == {"seen": 3}
    assert isinstance(table.call("look", {}, "stranger"), Refused)


@pytest.mark.parametrize(
    ("name", "role", "code"),
    [
        ("jmup", "operator", 1),
        ("jump", "operator", 2),
        ("jump", "viewer", 3),
        ("sulk", "operator", 4),
    ],
)
def test_clients_get_the_documented_codes(table: Commands, name: str, role: str, code: int) -> None:
    assert table.call(name, {}, role).code == code


def test_the_table_lists_names_and_roles(table: Commands) -> None:
    assert [(command.name, command.role) for command in table][:2] == [
        ("jump", "operator"),
        ("look", "viewer"),
    ]


def test_a_glance_runs_queries_of_viewers_only_and_refusals_are_none(
    table: Commands, jumps: list[Jump]
) -> None:
    asked = ["look", "sulk", "nothing", "jump", "glance", "look"]
    questions = [{"command": name, "parameters": {}} for name in asked]
    answers = table.call("glance", {"questions": questions}, "operator")
    assert answers == [{"seen": 3}, None, None, None, None, {"seen": 3}]
    assert jumps == [], "a glance runs no operator command"


def test_a_glance_is_bounded(table: Commands) -> None:
    answers = table.call("glance", {"questions": [{"command": "look"}] * 50}, "viewer")
    assert answers == [{"seen": 3}] * 50
    refused = table.call("glance", {"questions": [{"command": "look"}] * 51}, "viewer")
    assert isinstance(refused, Refused)
    assert refused.code == BAD_PARAMETERS


def test_a_glance_does_not_wait_for_an_answer_that_needs_time() -> None:
    table = Commands([Command("wait", "for a while", lambda _: Later(), role="viewer")])
    assert table.call("glance", {"questions": [{"command": "wait"}]}, "viewer") == [None]


def test_the_table_describes_itself_with_schemas(table: Commands) -> None:
    described = {each["name"]: each for each in table.commands()}
    assert table.call("commands", {}, "viewer") == list(described.values())
    assert list(described) == [command.name for command in table]
    jump = described["jump"]
    assert (jump["doc"], jump["role"]) == ("into the air", "operator")
    assert jump["parameters"]["$defs"]["Jump"]["required"] == ["height"]


def test_a_bug_of_a_command_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    table = Commands([Command("divide", "by zero", lambda _: 1 / 0, role="viewer")])
    answer = table.call("divide", {}, "viewer")
    assert isinstance(answer, Refused)
    assert (answer.code, answer.reason) == (BROKEN, "a bug; see the log")
    assert "ZeroDivisionError" in caplog.text


def test_a_wrong_parameter_of_every_command_is_named_with_its_value(bench: Bench) -> None:
    for command in bench.live.commands:
        assert command.parameters.__struct_config__.forbid_unknown_fields, command.name
        for field in msgspec.structs.fields(command.parameters):
            given = {field.name: {"no": "such value"}}
            refused = bench.live.commands.call(command.name, given, "operator")
            assert isinstance(refused, Refused), f"{command.name}: {field.name}"
    assert bench.refusal("rate", rate=-1).startswith("rate: rate: ")
    assert "got -1" in bench.refusal("rate", rate=-1)


def test_a_late_refusal_has_the_code_of_refusals() -> None:
    slow = Later()
    table = Commands([Command("wait", "for a while", lambda _: slow, role="viewer")])
    answers: list[Any] = []
    answer = table.call("wait", {}, "viewer")
    assert isinstance(answer, Later)
    answer.then(answers.append)
    slow.settle(Refused("no"))
    assert answers == [Refused("no", REFUSED)]
