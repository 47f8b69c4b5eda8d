"""The certificate of a course as text: who, which exercises, score, date, cell and version."""

from collections.abc import Mapping
from textwrap import shorten

from understudy.jobs.training.course import Result
from understudy.jobs.training.exercise import Exercise, Language, said

WIDTH = 72
LONGEST_TITLE = 48
TEXTS: Mapping[str, Mapping[str, str]] = {
    "title": {"en": "Certificate of operator training", "vi": "Chứng nhận đào tạo vận hành"},
    "name": {"en": "Trainee", "vi": "Học viên"},
    "date": {"en": "Date", "vi": "Ngày"},
    "cell": {"en": "Cell", "vi": "Cell"},
    "passed": {
        "en": "has passed these exercises on the simulated cell:",
        "vi": "đã hoàn thành các bài tập sau trên cell mô phỏng:",
    },
    "score": {"en": "{score} points", "vi": "{score} điểm"},
    "attempt": {"en": "attempt {attempt}, {seconds:.0f} s", "vi": "lần {attempt}, {seconds:.0f} s"},
    "total": {
        "en": "{passed} of {all} exercises, {score} of {most} points",
        "vi": "{passed} trên {all} bài tập, {score} trên {most} điểm",
    },
    "version": {
        "en": "Understudy {version}, seed {seed}",
        "vi": "Understudy {version}, seed {seed}",
    },
}


def certificate(
    trainee: str,
    date: str,
    language: Language,
    *,
    cell: str,
    seed: int,
    version: str,
    exercises: Mapping[str, Exercise],
    best: Mapping[str, Result],
) -> str:
    """The same words for the same results: the date is that of the caller."""

    def text(key: str, **given: object) -> str:
        return TEXTS[key][language].format(**given)

    labels = {"name": trainee, "date": date, "cell": cell}
    wide = max(len(text(key)) for key in labels)
    lines = [text("title"), "=" * WIDTH, ""]
    lines += [f"{text(key):<{wide}}  {value}" for key, value in labels.items()]
    lines += ["", text("passed"), ""]
    for name, result in best.items():
        title = shorten(said(exercises[name].title, language), LONGEST_TITLE, placeholder="…")
        score = text("score", score=result.score)
        how = text("attempt", attempt=result.attempt, seconds=result.seconds)
        lines.append(f"  {title:<{LONGEST_TITLE}}  {score:>10}  ({how})")
    points = sum(result.score for result in best.values())
    counts = {"passed": len(best), "all": len(exercises), "score": points}
    lines += ["", text("total", **counts, most=100 * len(exercises))]
    lines += [text("version", version=version, seed=seed), "=" * WIDTH]
    return "\n".join(lines) + "\n"
