"""Campaigns from start to end: the same outcomes on every way, also after a crash."""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from pathlib import Path

import msgspec
import pytest

from understudy.app.build import build_cell
from understudy.app.control_client import result_of
from understudy.app.ready_file import running_cells
from understudy.campaign.engines import ENGINES, local
from understudy.campaign.journal import Journal
from understudy.campaign.one_run import Outcome, Run, run_one
from understudy.campaign.plan import PlanFile, RunSpec, read_plan, replaced
from understudy.campaign.report import (
    as_csv,
    digest_of,
    histogram,
    interval,
    page,
    quantile,
    replay_command,
    report_of,
    round_marks,
    smallest_failures,
    spread,
    unit_of,
)
from understudy.cli import main
from understudy.errors import ConfigError
from understudy.html_page import Origin

DEADLINE_SECONDS = 300
TEXT = """
cell: text_robot
runs: 8
programs: {bench: text_square}
rules:
  heat: {fault: overheat, on: bench, probability: 0.5, at_s: 1}
  shaking: {fault: position_noise, on: bench}
grid:
  robots.bench.move_abs_ms: [300, 600]
checks:
  program_s: {at_most: 60}
"""


@pytest.fixture
def planned(tmp_path: Path) -> PlanFile:
    file = tmp_path / "campaign.yaml"
    file.write_text(TEXT)
    return read_plan(str(file), TEXT)


@pytest.fixture
def outcomes(planned: PlanFile) -> list[Outcome]:
    return [run_one(planned, spec) for spec in planned.plan.specs()]


# ── outcomes ──


def test_messages_of_mobile_robots_are_confirmed_as_by_a_broker(tmp_path: Path) -> None:
    """Each is sent once: what is not confirmed is sent again after 2 s and keeps robots awake."""
    text = """
cell: fleet
for_s: 7
script:
  - at_s: 1
    to: nats
    address: robot.robot-1.command.request
    message: {messageId: go, payload: {commandType: SET_SPEED_LIMIT, parameters: {maxSpeedMps: 1}}}
figures: {waiting: fleet.waiting}
checks: {waiting: {equals: 0}}
"""
    planned = read_plan(str(tmp_path / "campaign.yaml"), text)
    spec = next(planned.plan.specs())
    config = planned.config(spec)
    run = Run(planned, config, build_cell(config))
    assert run.play() == ""
    assert run.broken(run.figures()) == ""
    sent = [event.address[1] for event in run.cell.transcript if event.address is not None]
    ids = [reply_to for reply_to in sent if reply_to]
    assert len(ids) > 20
    assert {ids.count(each) for each in ids} == {2}, "the message, and its confirmation"


def test_a_run_is_the_same_every_time_and_differs_by_its_seed(planned: PlanFile) -> None:
    spec = next(planned.plan.specs())
    first, again = run_one(planned, spec), run_one(planned, spec)
    assert first.without_cost() == again.without_cost()
    other = run_one(planned, msgspec.structs.replace(spec, seed=spec.seed + 1))
    assert other.digest != first.digest


def test_some_runs_pass_and_the_others_say_why_not(outcomes: list[Outcome]) -> None:
    problems = {outcome.problem for outcome in outcomes}
    assert "" in problems
    assert any("bench" in problem for problem in problems)
    passed = [outcome for outcome in outcomes if outcome.passed]
    assert all(outcome.figures["program_s"] for outcome in passed)


def test_values_of_the_grid_change_the_figures(outcomes: list[Outcome]) -> None:
    times = {
        outcome.point["robots.bench.move_abs_ms"]: outcome.figures["program_s"]
        for outcome in outcomes
        if outcome.passed
    }
    assert float(str(times[600])) > float(str(times[300]))


def test_a_script_speaks_to_the_cell_at_its_times(tmp_path: Path) -> None:
    text = """
        cell: text_robot
        runs: 1
        for_s: 3
        programs: {}
        script:
          - {at_s: 1, to: bench.text_tcp, text: "MOVE_ABS 100,0,100,0,0,0\\n"}
        figures: {x_m: bench.pose.0}
        checks: {x_m: {at_least: 0.09, at_most: 0.11}}
    """
    planned = read_plan(str(tmp_path / "c.yaml"), text)
    config = planned.config(RunSpec(0, 0, {}, ("lost_commands",)))
    assert "lost_commands" not in config.head.scenario.rules
    outcome = run_one(planned, RunSpec(0, 0, {}, ("lost_commands", "noisy_position")))
    assert outcome.problem == ""
    assert outcome.figures["simulated_s"] == 3.0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("checks: {speed: {at_most: 1}}", "no such figure"),
        ("figures: {x: bench.pos}", "no such value"),
        ("figures: {x: bank.pose}", "no such part"),
    ],
)
def test_a_figure_that_does_not_exist_is_named(more: str, says: str, tmp_path: Path) -> None:
    planned = read_plan(str(tmp_path / "c.yaml"), f"cell: text_robot\nfor_s: 1\n{more}")
    with pytest.raises(ConfigError) as problem:
        run_one(planned, RunSpec(0, 0, {}))
    assert says in str(problem.value)


# ── engines ──


def test_a_worker_that_dies_changes_nothing(
    planned: PlanFile, outcomes: list[Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE_ONCE", str(tmp_path / "died"))
    found = list(local(partial(die_once, planned), planned.plan.specs(), 1))
    assert (tmp_path / "died").exists()
    assert digest_of(found) == digest_of(outcomes)


def die_once(planned: PlanFile, spec: RunSpec) -> Outcome:
    """Kills its own process in the middle of the campaign, once."""
    mark = Path(os.environ["DIE_ONCE"])
    if spec.number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run_one(planned, spec)


def test_a_ray_cluster_gives_the_same_outcomes(
    planned: PlanFile, outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    found = list(ENGINES["ray"](partial(run_one, planned), planned.plan.specs(), 1))
    assert digest_of(found) == digest_of(outcomes)


# ── the journal ──


def test_a_journal_goes_on_where_it_was_cut(
    planned: PlanFile, outcomes: list[Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "runs.jsonl"
    with Journal(path, planned) as journal:
        for outcome in outcomes[:5]:
            journal.add(outcome)
    path.write_bytes(path.read_bytes()[:-20])
    with Journal(path, planned) as journal:
        assert sorted(journal.outcomes) == [0, 1, 2, 3]
        for outcome in outcomes:
            journal.add(outcome)
    with Journal(path, planned) as journal:
        assert digest_of(journal.outcomes.values()) == digest_of(outcomes)


def test_a_journal_of_another_campaign_is_refused(planned: PlanFile, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with Journal(path, planned):
        pass
    other = read_plan(planned.file, TEXT.replace("0.5", "0.6"))
    with pytest.raises(ConfigError, match="another campaign"):
        Journal(path, other)
    with pytest.raises(ConfigError, match="--runs"):
        Journal(path, PlanFile(replaced(planned.plan, runs=9, seed=None), planned.file))
    for foreign in (b"hello\n", b'{"digest": "\xff"}\n', b"[" * 100_000 + b"\n"):
        path.write_bytes(foreign)
        with pytest.raises(ConfigError, match="not the journal"):
            Journal(path, planned)


def test_a_journal_is_refused_when_a_program_has_changed(tmp_path: Path) -> None:
    program = tmp_path / "own.txt"
    program.write_text("HOME\n")
    (tmp_path / "own.yaml").write_text("robots: {bench: {kind: text_robot}}")
    text = "cell: own.yaml\nprograms: {bench: own.txt}"
    planned = read_plan(str(tmp_path / "campaign.yaml"), text)
    with Journal(tmp_path / "runs.jsonl", planned):
        pass
    program.write_text("HOME\nHOME\n")
    with pytest.raises(ConfigError, match="a program"):
        Journal(tmp_path / "runs.jsonl", planned)


# ── the smallest failure ──


def test_the_smallest_failure_needs_only_its_rule(
    planned: PlanFile, outcomes: list[Outcome]
) -> None:
    failures = smallest_failures(planned, outcomes, lambda spec: run_one(planned, spec))
    assert len(failures) == 2, "one for each point"
    for failure in failures:
        seeds = [o.seed for o in outcomes if o.point == failure.point and not o.passed]
        assert failure.seed == min(seeds)
        assert failure.needed == ("heat",)


def test_the_command_of_a_failure_can_be_pasted() -> None:
    command = replay_command("my file.yaml", 7, {"robots.a.tool": 2, "x": "y z"}, ["noise"])
    assert command == (
        "understudy campaign 'my file.yaml' --only 7 --point robots.a.tool=2 "
        "--point 'x=\"y z\"' --without noise"
    )


# ── the report ──


def test_the_interval_is_wilsons() -> None:
    low, high = interval(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(20, 20)[1] == 1.0


def test_quantiles_lie_between_their_neighbours() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([7.0], 0.95) == 7.0
    assert spread([3.0, 1.0, 2.0]).mean == 2.0


def test_a_histogram_counts_every_value() -> None:
    low, high, counts = histogram([0.0, 0.1, 0.5, 1.0], 10)
    assert (low, high, sum(counts), counts[-1]) == (0.0, 1.0, 4, 1)
    assert histogram([2.0, 2.0]) == (2.0, 2.0, [2])


def test_the_table_has_a_row_for_each_run(planned: PlanFile, outcomes: list[Outcome]) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(planned.plan, outcomes))))
    assert len(rows) == len(outcomes) == 16
    assert rows[8]["robots.bench.move_abs_ms"] == "600"


def test_the_same_value_twice_is_two_points(outcomes: list[Outcome], planned: PlanFile) -> None:
    twice = msgspec.structs.replace(planned.plan, grid={"robots.bench.move_abs_ms": [300, 300]})
    same = {"robots.bench.move_abs_ms": 300}
    report = report_of(twice, [msgspec.structs.replace(o, point=same) for o in outcomes], [])
    assert [point.runs for point in report.points] == [8, 8]


def test_the_page_has_plots_and_no_markup_of_others(
    planned: PlanFile, outcomes: list[Outcome]
) -> None:
    evil = [msgspec.structs.replace(o, problem="<script>x</script>") for o in outcomes]
    text = page(planned, report_of(planned.plan, evil, []), evil)
    assert "<svg" in text
    assert "<script>x" not in text
    assert "0.00%" in text


def test_the_page_lists_every_failing_run_with_its_two_commands(
    planned: PlanFile, outcomes: list[Outcome]
) -> None:
    report = report_of(planned.plan, outcomes, [])
    text = page(planned, report, outcomes, Origin("text_robot", "understudy campaign x", "today"))
    failed = [each for each in outcomes if not each.passed]
    assert len(failed) >= 2
    for each in failed:
        again = escape(replay_command(planned.file, each.seed, each.point))
        assert f"<code>{again}</code><code>{again} --open</code>" in text
    assert f"<summary>{len(failed)} failing runs</summary>" in text
    assert "<code>understudy campaign x</code>" in text
    assert "today" in text
    assert "today" not in page(planned, report, outcomes), "the date comes from outside"


def test_histograms_have_axes_with_units(planned: PlanFile, outcomes: list[Outcome]) -> None:
    text = page(planned, report_of(planned.plan, outcomes, []), outcomes)
    assert ">program_s in s</text>" in text
    assert ">runs</text>" in text
    assert (unit_of("distance_mm"), unit_of("cycle_s"), unit_of("placed")) == ("mm", "s", "")
    assert round_marks(22.8, 26.8, 6) == [23, 24, 25, 26]
    assert round_marks(0.0, 9.0, 4) == [0, 5]
    assert round_marks(0.0, 0.0012, 6) == pytest.approx([0, 0.0005, 0.001])


# ── the command line ──


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "understudy", "campaign", *words]


@pytest.fixture
def running(planned: PlanFile) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command(planned.file, "--workers", "1"),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=DEADLINE_SECONDS)


def test_a_killed_campaign_is_resumed(
    running: subprocess.Popen[bytes], planned: PlanFile, outcomes: list[Outcome]
) -> None:
    journal = Path(planned.file).with_suffix(".runs") / "runs.jsonl"
    end = time.monotonic() + DEADLINE_SECONDS
    while not journal.exists() or journal.read_bytes().count(b"\n") < 4:
        assert time.monotonic() < end
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):  # on a slow machine it may have ended
        os.killpg(running.pid, signal.SIGKILL)
    running.wait(DEADLINE_SECONDS)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]) + b'{"number":')
    again = subprocess.run(
        command(planned.file, "--workers", "1"),
        capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert again.returncode == 1, again.stderr
    assert "runs are done already" in again.stderr
    report = json.loads((journal.parent / "report.json").read_text())
    assert report["digest"] == digest_of(outcomes)
    assert "--only" in again.stdout
    assert (journal.parent / "report.html").exists()


QUICK = "cell: text_robot\nruns: 1\nfor_s: 1\nprograms: {}\nrules: {}"


def called(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command, carried out in this process."""
    one_by_one = lambda carry_out, specs, _: map(carry_out, specs)  # noqa: E731
    monkeypatch.setitem(ENGINES, "local", one_by_one)
    monkeypatch.setattr(sys, "argv", ["understudy", "campaign", *words])
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


def test_one_run_can_be_replayed(
    planned: PlanFile, outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    failed = next(outcome for outcome in outcomes if not outcome.passed)
    value = failed.point["robots.bench.move_abs_ms"]
    words = ["--only", str(failed.seed), "--point", f"robots.bench.move_abs_ms={value}"]
    assert called([planned.file, *words], monkeypatch) == 1
    shown = capsys.readouterr().out
    assert failed.digest in shown
    assert failed.problem in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--out", "campaign.yaml"], "campaign.yaml: cannot be written"),
        (["--json", "missing/report.json"], "missing/report.json: cannot be written"),
        (["--runs", "99999999999"], "runs"),
        (["--seed", "99999999999999999999"], "seed"),
        (["--without", "heat"], "--only"),
        (["--engine", "rai"], "did you mean 'ray'"),
    ],
)
def test_a_wrong_option_is_named(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("campaign.yaml").write_text(QUICK)
    assert called(["campaign.yaml", *words], monkeypatch) == 2
    assert says in capsys.readouterr().err


def test_a_fresh_start_keeps_other_files_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "campaign.yaml").write_text(QUICK)
    (tmp_path / "thesis.txt").write_text("mine")
    words = [str(tmp_path / "campaign.yaml"), "--out", str(tmp_path)]
    assert called(words, monkeypatch) == 0
    assert called([*words, "--seed", "3", "--fresh"], monkeypatch) == 0
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[1])["seed"] == 3


@pytest.mark.parametrize(
    ("name", "count"), [("weld_campaign", 2), ("fleet_campaign", 1), ("pick_place_campaign", 2)]
)
def test_the_examples_run(
    name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    example = Path(__file__).parents[2] / f"examples/{name}.yaml"
    assert called([str(example), "--runs", "1", "--out", str(tmp_path)], monkeypatch) in (0, 1)
    assert f"of {count} runs passed" in capsys.readouterr().out


# ── pick & place ──

PICKING = """
cell: machine_tending
runs: 1
pick_place: {g60: 2}
rules:
  slipping: {fault: slip, on: g60.gripper, when: {of: g60.io, pin: DOOR_OPEN}}
"""


def picking(folder: Path, text: str, *without: str) -> Outcome:
    planned = read_plan(str(folder / "campaign.yaml"), text)
    return run_one(planned, RunSpec(0, 0, {}, without))


def test_jobs_are_run_to_their_end_with_figures_of_their_own(tmp_path: Path) -> None:
    outcome = picking(tmp_path, PICKING, "slipping")
    assert outcome.problem == ""
    assert (outcome.figures["placed"], outcome.figures["failed_cycles"]) == (2, 0)
    assert float(str(outcome.figures["cycle_s"])) > 5.0
    again = picking(tmp_path, PICKING, "slipping")
    assert outcome.without_cost() == again.without_cost()


def test_a_job_that_ends_with_a_fault_fails_the_run(tmp_path: Path) -> None:
    outcome = picking(tmp_path, PICKING)
    assert outcome.problem.startswith("g60: PART_LOST")
    assert (outcome.figures["placed"], outcome.figures["failed_cycles"]) == (0, 1)
    assert picking(tmp_path, PICKING + "programs_may_fail: true").passed


def test_a_job_that_still_runs_is_a_problem_only_without_a_time(tmp_path: Path) -> None:
    assert picking(tmp_path, PICKING + "for_s: 8", "slipping").passed


def test_a_job_that_cannot_start_fails_the_run(tmp_path: Path) -> None:
    manual = PICKING + "grid: {robots.g60.modes.start: [MANUAL]}"
    planned = read_plan(str(tmp_path / "campaign.yaml"), manual)
    outcome = run_one(planned, next(planned.plan.specs()))
    assert "PICKPLACE" in outcome.problem


# ── the commands of a report ──


FAILS = """
cell: text_robot
runs: 2
programs: {bench: text_square}
rules:
  heat: {fault: overheat, on: bench, at_s: 1}
"""


def pasted(command: str, folder: Path, **env: str) -> "subprocess.Popen[str]":
    """A command as a user pastes it into a shell."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=folder, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.STDOUT, env={**os.environ, "PATH": path, **env},
    )  # fmt: skip


def test_both_commands_of_a_failure_work_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headless: the same problem. On the page: the same program in a live cell, which has failed
    in the same way."""
    monkeypatch.chdir(tmp_path)
    Path("my runs.yaml").write_text(FAILS)
    assert called(["my runs.yaml", "--json", "report.json", "-q"], monkeypatch) == 1
    (failure,) = json.loads(Path("report.json").read_text())["failures"]
    headless = pasted(failure["command"], tmp_path)
    shown, _ = headless.communicate(timeout=DEADLINE_SECONDS)
    assert headless.returncode == 1, shown
    assert failure["problem"] in shown
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > opened.part && mv opened.part opened\n')
    browser.chmod(0o755)
    live = pasted(failure["page"], tmp_path, BROWSER=str(browser), XDG_RUNTIME_DIR=str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    end = time.monotonic() + DEADLINE_SECONDS
    problem = ""
    while not (problem and Path("opened").exists()):
        assert time.monotonic() < end
        assert live.poll() is None, live.communicate()
        for ready in running_cells():
            (robot,) = result_of(ready, {"do": "robots"})["robots"]
            problem = robot["error"]
        time.sleep(0.1)
    live.send_signal(signal.SIGINT)
    shown, _ = live.communicate(timeout=DEADLINE_SECONDS)
    assert live.returncode == 0, shown
    assert f"Page: {Path('opened').read_text().strip()}" in shown
    assert "Temperature too high" in failure["problem"]
    assert "Temperature too high" in problem
