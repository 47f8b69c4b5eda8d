"""Reports as HTML pages: files that people mail and archive.

A page is one file. It refers to no other file, and its content security policy allows nothing but
the style and the script that are written in it.
"""

from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;
color:#1d2733;background:#fff}h1{font-size:1.4rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;margin:.5rem 0}td,th{border:1px solid #cfd8e0;padding:.25rem .6rem;
text-align:left;vertical-align:top}th{background:#eef2f5}td.n,th.n{text-align:right}
code,pre{background:#eef2f5;padding:.1rem .3rem;overflow-wrap:anywhere}pre{padding:.7rem;
overflow:auto}.good{color:#11703c}.bad{color:#b3261e}.bar{fill:#2a78b8}svg{max-width:100%}
.origin{font-size:.85rem;color:#51606e}summary{cursor:pointer;font-weight:600}
figure{margin:0}figcaption{font-size:.85rem;color:#51606e}
.figures{display:flex;flex-wrap:wrap;gap:1.2rem}
"""
"""Style of the reports that have no style of their own."""


@dataclass(frozen=True)
class Origin:
    """Where a report comes from: it stands below the title. What is not known is left out."""

    cell: str = ""
    command: str = ""
    date: str = ""
    version: str = ""

    def html(self) -> str:
        made = f"Understudy {self.version}".strip() if self.version else ""
        texts = (self.cell and f"cell {self.cell}", self.date, made)
        facts = " · ".join(escape(text) for text in texts if text)
        command = f"<code>{escape(self.command)}</code>" if self.command else ""
        lines = "<br>".join(filter(None, (facts, command)))
        return f'<p class="origin">{lines}</p>' if lines else ""


UNKNOWN = Origin()


class Html(str):
    """Text that is HTML already; every other text is escaped."""


def html_page(
    title: str,
    parts: Iterable[str],
    *,
    origin: Origin | None = None,
    style: str = STYLE,
    script: str = "",
    pictures: bool = False,
) -> str:
    """The text of the file. ``parts``: HTML of the body, below a heading with the title and the
    origin, if there is one; ``pictures``: there are some in it."""
    head = "" if origin is None else f"<h1>{escape(title)}</h1>{origin.html()}"
    policy = policy_meta([script] if script else [], [style], pictures=pictures)
    code = f"<script>{script}</script>" if script else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{policy}'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body>{head}{''.join(parts)}{code}</body></html>\n"
    )


def policy_meta(scripts: Sequence[str], styles: Sequence[str], *, pictures: bool = False) -> str:
    """The `<meta>` element that allows these texts of script and style elements, and nothing else:
    no other script, no handler attribute, no request. ``pictures``: those in the file itself."""
    directives = (
        "default-src 'none'",
        f"script-src {_sources(scripts)}",
        f"style-src {_sources(styles)}",
        *(["img-src data:"] if pictures else []),
        "base-uri 'none'",
        "form-action 'none'",
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(directives)}">'


def _sources(texts: Sequence[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def table(
    rows: Iterable[Sequence[str]], head: Sequence[str] = (), figures: Collection[int] = ()
) -> Html:
    """A table; ``figures``: the columns that are aligned to the right."""
    top = f"<thead>{_row(head, 'th', figures)}</thead>" if head else ""
    body = "".join(_row(row, "td", figures) for row in rows)
    return Html(f"<table>{top}<tbody>{body}</tbody></table>")


def folded(noun: str, lines: Collection[str]) -> str:
    """A list that is shown when its title is clicked, `3 notes`; empty without lines."""
    rows = "".join(f"<li>{escape(each)}</li>" for each in lines)
    title = f"{len(lines)} {noun}{'' if len(lines) == 1 else 's'}"
    return f"<details><summary>{title}</summary><ul>{rows}</ul></details>" if rows else ""


def _row(cells: Sequence[str], tag: str, figures: Collection[int]) -> str:
    texts = (
        f"<{tag}{' class=n' if n in figures else ''}>{_escaped(cell)}</{tag}>"
        for n, cell in enumerate(cells)
    )
    return f"<tr>{''.join(texts)}</tr>"


def _escaped(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)


def marked(text: str, *, good: bool) -> Html:
    """A text in the colour of what is good, or of what is bad."""
    return Html(f'<span class="{"good" if good else "bad"}">{_escaped(text)}</span>')


def bars(
    values: Sequence[float],
    *,
    height: float,
    step: float,
    gap: float,
    left: float = 0.0,
    top: float = 0.0,
    titles: Sequence[str] = (),
) -> str:
    """Elements of an SVG: a bar for each value, the largest one of this height. ``step``: from bar
    to bar, with ``gap`` between two; ``titles``: shown at a bar that is pointed at."""
    largest = max(values) or 1.0
    found = []
    for n, value in enumerate(values):
        high = height * value / largest
        title = f"<title>{escape(titles[n])}</title>" if titles else ""
        if high > 0.0:
            found.append(
                f'<rect class="bar" x="{left + n * step:.1f}" y="{top + height - high:.1f}" '
                f'width="{max(step - gap, 1.0):.1f}" height="{high:.1f}">{title}</rect>'
            )
    return "".join(found)
