"""Hooks of mkdocs: what `make docs` makes of docs/ beside rendering it.

The pages are plain Markdown as code hosts render it, with relative links that lead somewhere in the
repository. Here they become pages of a site: the navigation is read from docs/README.md, links to
files outside docs/ lead to a page with that file, and the reference is made from tables.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.docs_site import reference  # noqa: E402

INDEX = ROOT / "docs/README.md"
PROJECT_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages at the root of the repository, and where they are in the site."""
MERMAID = "assets/mermaid.js"
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r" *(```+|~~~+)")
ITEM = re.compile(r"( *)([-*+]|\d+[.)])( +)(?=\S)")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".sh": "sh", ".mjs": "js"}

_sources: dict[str, str] = {}
"""Page of the site → file of the repository from which it is made, if that is outside docs/."""


# ── the pages ──


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs["toc"]["slugify"] = anchor
    config.nav = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    _sources.clear()
    for source, page in PROJECT_PAGES.items():
        text = (ROOT / source).read_text()
        files.append(_generated(config, page, text, source))
    for page, text in reference.pages().items():
        files.append(_generated(config, page, text, f"docs/{page}"))
    linked = {
        target
        for file in files.documentation_pages()
        for target, _ in _targets(file.content_string, _folder(file.src_uri))
        if not target.startswith("docs/") and target not in PROJECT_PAGES
    }
    for source in sorted(linked):
        if (ROOT / source).is_file() and source != "README.md":
            files.append(_generated(config, source_page(source), source_text(source), source))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri.startswith("source/"):
        return markdown
    text = with_links_of_the_site(markdown, page.file.src_uri)
    return as_markdown_of_the_site(text)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pages with diagrams load the library that draws them; it is one of the files of the site."""
    if '<pre class="mermaid">' not in html:
        return html
    up = "../" * page.url.count("/")
    return f'{html}<script src="{up}{MERMAID}"></script>'


def on_post_build(config: MkDocsConfig) -> None:
    import mermaidx

    script = Path(mermaidx.__file__).parent / "assets/mermaid.js"
    shutil.copyfile(script, Path(config.site_dir) / MERMAID)
    # Its addresses begin at the root of a server; the site may be in a folder, or on a disk.
    (Path(config.site_dir) / "404.html").unlink()


def _generated(config: MkDocsConfig, page: str, text: str, source: str) -> File:
    _sources[page] = source
    return File.generated(config, page, content=text)


def anchor(title: str, separator: str = "-") -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


# ── navigation ──


def navigation() -> list[Any]:
    """The sections of docs/README.md with the pages that they link to, each page once. Pages of a
    folder follow the page of that folder; decisions are linked to by their index only."""
    seen = {"README.md"}
    nav: list[Any] = [{"Start": "README.md"}]
    for title, text in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", INDEX.read_text()):
        rows: list[Any] = []
        groups: dict[str, list[Any]] = {}
        for target, page in _pages_of_the_index(text):
            if page in seen:
                continue
            seen.add(page)
            folder = str(PurePosixPath(page).parent)
            if target.endswith("README.md"):
                groups[folder] = [page]
                rows.append({_title(target): groups[folder]})
                if folder == "decisions":
                    others = sorted((ROOT / "docs/decisions").glob("[!R]*.md"))
                    groups[folder] += [f"decisions/{each.name}" for each in others]
            elif page in REFERENCE_TITLES:
                rows.append({REFERENCE_TITLES[page]: page})
            else:
                groups.get(folder, rows).append(page)
        if rows:
            nav.append({title: rows})
    last = nav[-1]
    assert isinstance(last, dict)
    next(iter(last.values())).append({"Changes": PROJECT_PAGES["CHANGELOG.md"]})
    nav.append({"Reference": list(reference.pages())})
    return nav


REFERENCE_TITLES: Mapping[str, str] = {}


def _pages_of_the_index(text: str) -> Iterator[tuple[str, str]]:
    """The pages that a section links to: file of the repository, page of the site."""
    for target, _ in _targets(text, "docs"):
        if target in PROJECT_PAGES:
            yield target, PROJECT_PAGES[target]
        elif target.startswith("docs/") and target.endswith(".md"):
            yield target, target.removeprefix("docs/")


def _title(source: str) -> str:
    """The heading of a page, which names its folder in the navigation."""
    found = re.search(r"^# (.*)$", (ROOT / source).read_text(), re.MULTILINE)
    assert found, source
    return found[1].partition(":")[0]


# ── links ──


def with_links_of_the_site(text: str, page: str) -> str:
    """The text with links to where its targets are in the site. Fenced code stays as it is."""
    folder = _folder(page)

    def replaced(match: re.Match[str]) -> str:
        target = _in_the_repository(match[2], folder)
        if target is None:
            return match[0]
        if target.startswith("docs/"):
            to = target.removeprefix("docs/")
        elif target in PROJECT_PAGES:
            to = PROJECT_PAGES[target]
        elif target == "README.md":
            to = "README.md"
        else:
            to = source_page(target)
        return f"{match[1]}{os.path.relpath(to, PurePosixPath(page).parent)}{match[3]}"

    return "\n".join(line if fenced else LINK.sub(replaced, line) for fenced, line in _lines(text))


def source_page(source: str) -> str:
    """The page of the site that shows a file of the repository."""
    return f"source/{source.removesuffix('.md').lstrip('.')}.md"


def source_text(source: str) -> str:
    text = (ROOT / source).read_text()
    title = f"# {source}"
    head = f"---\nsearch:\n  exclude: true\ntitle: {Path(source).name}\n---\n"
    if source.endswith(".md"):
        return f"{head}{text}"
    language = LANGUAGES.get(Path(source).suffix, "text")
    return f"{head}{title}\n\n````{language}\n{text}\n````\n"


def _folder(page: str) -> str:
    """The folder of the repository from which the links of a page of the site are seen."""
    return str(PurePosixPath(_sources.get(page, f"docs/{page}")).parent)


def _targets(text: str, folder: str) -> Iterator[tuple[str, str]]:
    for fenced, line in _lines(text):
        for match in () if fenced else LINK.finditer(line):
            if (target := _in_the_repository(match[2], folder)) is not None:
                yield target, match[3]


def _in_the_repository(link: str, folder: str) -> str | None:
    """The path of a relative link, seen from the root of the repository."""
    if "://" in link or link.startswith(("mailto:", "/")):
        return None
    return os.path.normpath(f"{folder}/{link}")


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """Every line, and whether it is in fenced code."""
    fence = ""
    for line in text.split("\n"):
        match = FENCE.match(line)
        if match and not fence:
            fence = match[1]
            yield True, line
        elif match and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
            yield True, line
        else:
            yield bool(fence), line


# ── Markdown ──


def as_markdown_of_the_site(text: str) -> str:
    """The same text for Python-Markdown. It wants an empty line before a list and four spaces for
    each level of it, and takes a bar in code for one even without a backslash."""
    out: list[str] = []
    indents: list[int] = []  # where the text of each open item begins
    empty = True
    for fenced, line in _lines(text):
        indent = len(line) - len(line.lstrip())
        item = None if fenced else ITEM.match(line)
        if line.strip() and (empty or item or not fenced):
            while indents and indent < indents[-1] and (empty or item):
                indents.pop()
        if item:
            paragraph = bool(out) and not ITEM.match(out[-1]) and not out[-1].startswith(" ")
            if not indents and not empty and paragraph:
                out.append("")
            out.append(f"{'    ' * len(indents)}{item[2]} {line[item.end() :]}")
            indents.append(item.end())
        elif indents and line.strip():
            rest = line[min(indents[-1], indent) :]
            out.append(f"{'    ' * len(indents)}{rest}")
        elif line.startswith("|") and not fenced:
            out.append(re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line))
        else:
            out.append(line)
        empty = not line.strip() and not fenced
    return "\n".join(out)
