"""The reference of the site: pages made from the tables that the code reads, at every build.

They are thousands of lines, so that they are not in the repository and cannot be out of date. A
reader of the repository has `understudy COMMAND --help`, the query `commands`, and the pages below
docs/ that explain the same by hand.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import msgspec
from msgspec import Struct

from understudy import operator
from understudy.cli import load
from understudy.config import cell as cell_file
from understudy.config.cell import device_keys, wire_keys
from understudy.config.typed import Field, fields_of
from understudy.hmi.access import MONITORING
from understudy.hmi.rest import CommandRow, openapi
from understudy.operator.table import commands_of
from understudy.registry import TABLES, cli_rows, module_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
UNITS: Mapping[str, str] = {
    "mm": "mm",
    "m": "m",
    "deg": "°",
    "rad": "rad",
    "ms": "ms",
    "s": "s",
    "min": "min",
    "hz": "Hz",
    "n": "N",
    "nm": "N·m",
    "kg": "kg",
    "g": "g",
    "v": "V",
    "a": "A",
    "kpa": "kPa",
    "pct": "%",
    "percent": "%",
    "px": "pixels",
    "bytes": "bytes",
    "mm_s": "mm/s",
    "mm_min": "mm/min",
    "m_min": "m/min",
    "mm_s2": "mm/s²",
    "mm_s3": "mm/s³",
    "m_s": "m/s",
    "m_s2": "m/s²",
    "deg_s": "°/s",
    "deg_s2": "°/s²",
    "rad_s": "rad/s",
    "rad_s2": "rad/s²",
    "bytes_per_s": "bytes/s",
    "n_per_v": "N/V",
    "kpa_per_v": "kPa/V",
}
"""End of a key, behind a _, and the unit that it says."""
LONGEST_DEFAULT = 60


@cache
def pages() -> dict[str, str]:
    """Every page by its path in the site."""
    return {
        "reference/README.md": INDEX,
        "reference/config.md": config_page(),
        "reference/commands.md": commands_page(),
        "reference/rest.md": rest_page(),
        "reference/cli.md": cli_page(),
        "reference/states.md": states_page(),
    }


INDEX = """\
# Reference

Made from the tables that the code reads, whenever the site is built.

- [Keys of cell files](config.md): type, default and unit of each
- [Commands and queries](commands.md) of a running cell: role, parameters
- [REST](rest.md): the addresses of the same commands
- [The command line](cli.md): all commands with their options
- [State diagrams](states.md) of robots, devices and jobs
- [Faults](../simulation/fault_atlas.md): every fault with its situation and the expected reaction
- [Messages of mobile robots](../robots/mobile_messages.md) on NATS, and what is emulated of
  [VDA 5050](../parity/vda5050.md)
- [Parity](../parity/README.md): every operation of every wire, and how it was verified
"""


# ── cell files ──


def config_page() -> str:
    lines = [
        "# Keys of cell files",
        "",
        "Unknown keys are errors. The unit of a value is in its name; *required* keys have no "
        "default. [Cell files](../config/cells.md) explains them with examples.",
        "",
        "## The cell",
        "",
        *_class_tables(cell_file.Head, "", set()),
    ]
    for table, title in (("sections", "Sections of capabilities"), ("robots", "Robots")):
        lines += [f"## {title}", ""]
        if table == "robots":
            head = "Every robot has these keys, those of its kind, of its devices and of its jobs."
            lines += [head, "", *_table(fields_of(cell_file.RobotHead)), ""]
        for kind in TABLES[table]:
            module = module_of(table, kind)
            lines += [f"### {_named(kind, table)}", ""]
            if table == "robots":
                devices = ", ".join(f"`{each}`" for each in device_keys(module.Config))
                lines += [f"Devices mounted on it: {devices}." if devices else "", ""]
            lines += _class_tables(module.Config, "", set())
    lines += ["## Devices", ""]
    for kind in TABLES["devices"]:
        lines += [f"### {_named(kind, 'devices')}", ""]
        lines += _class_tables(module_of("devices", kind).Config, "", set())
    lines += ["## Jobs of a robot", ""]
    for kind in TABLES["jobs"]:
        for key, section in module_of("jobs", kind).SECTIONS.items():
            lines += [f"### `{key}` of {kind}", "", *_class_tables(section, "", set())]
    lines += ["## Faces", ""]
    for kind in TABLES["faces"]:
        module = module_of("faces", kind)
        lines += [f"### {_named(kind, 'faces')}", "", *_class_tables(module.Config, "", set())]
        for name, endpoint in module.ENDPOINTS.items():
            keys = ", ".join(f"`{key}`" for key in wire_keys(endpoint))
            defaults = ", ".join(f"`{key}: {value}`" for key, value in endpoint.defaults.items())
            where = f"`{name}`" if name else "Where it listens"
            lines += [f"{where}: {keys}; default {defaults or 'none'}.", ""]
    lines += ["## Wires", ""]
    for kind in TABLES["wires"]:
        lines += [f"### {_named(kind, 'wires')}", ""]
        lines += _class_tables(module_of("wires", kind).Config, "", set())
    return "\n".join(lines)


def _named(kind: str, table: str) -> str:
    return f"`{kind}`" if table == "sections" else f"`{kind}` ({table.removesuffix('s')})"


def _class_tables(config: Any, key: str, seen: set[type]) -> list[str]:
    """The keys of a class, then those of the classes that its keys hold."""
    if not (isinstance(config, type) and issubclass(config, Struct)):
        return []
    if config in seen:
        return []
    seen.add(config)
    fields = fields_of(config)
    lines = [f"#### `{key}`", ""] if key else []
    if about := _about(config):
        lines += [about, ""]
    lines += [*_table(fields), ""] if fields else ["No keys.", ""]
    types = msgspec.inspect.type_info(config)
    assert isinstance(types, msgspec.inspect.StructType)
    for field in types.fields:
        inside = f"{key}.{field.encode_name}" if key else field.encode_name
        for each, mark in _classes_in(field.type):
            lines += _class_tables(each, f"{inside}{mark}", seen)
    return lines


def _classes_in(info: Any, mark: str = "") -> Iterator[tuple[type, str]]:
    """The configuration classes of a type; `[]` marks those of a list, `.NAME` of a mapping."""
    shape = msgspec.inspect
    if isinstance(info, shape.StructType):
        yield info.cls, mark
    elif isinstance(info, shape.Metadata):
        yield from _classes_in(info.type, mark)
    elif isinstance(info, shape.UnionType):
        for each in info.types:
            yield from _classes_in(each, mark)
    elif isinstance(info, shape.ListType | shape.VarTupleType):
        yield from _classes_in(info.item_type, f"{mark}[]")
    elif isinstance(info, shape.DictType):
        yield from _classes_in(info.value_type, f"{mark}.NAME")


def _about(config: type) -> str:
    """What the docstring of a class says; msgspec and dataclasses write none."""
    text = vars(config).get("__doc__") or ""
    return escaped(" ".join(text.replace("``", "`").split()))


def _table(fields: Sequence[Field]) -> list[str]:
    rows = ["| key | value | default | unit |", "|---|---|---|---|"]
    for each in fields:
        default = "*required*" if each.required else _shown(each.default)
        rows.append(
            f"| `{each.name}` | {escaped(each.allowed)} | {default} | {unit_of(each.name)} |"
        )
    return rows


def unit_of(key: str) -> str:
    """The unit that a name ends with: the longest end that is one."""
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", key).lower().split("_")
    ends = ("_".join(words[start:]) for start in range(1, len(words)))
    return next((UNITS[end] for end in ends if end in UNITS), "")


def _shown(default: Any) -> str:
    if default is None:
        return ""
    text = msgspec.json.encode(default).decode()
    if text in ("{}", "[]", '""') or len(text) > LONGEST_DEFAULT:
        return "" if len(text) <= 2 else "as below"
    return f"`{text}`".replace("|", "\\|")


def escaped(text: str) -> str:
    """Plain text as Markdown of a table; what is in code stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = [
        part
        if part.startswith("`")
        else re.sub(r"([*_\[\]|])", r"\\\1", part.replace("<", "&lt;").replace(">", "&gt;"))
        for part in parts
    ]
    return "".join(plain).replace("\n", " ")


# ── commands ──


@cache
def command_rows() -> list[CommandRow]:
    """The commands of every class that declares some. No cell is run: none has all of them."""
    names = [f"{operator.__name__}.{each.name}" for each in iter_modules(operator.__path__)]
    found: dict[str, CommandRow] = {}
    for name in (*TABLES["commands"].values(), *names):
        module = import_module(name)
        for kind in vars(module).values():
            if isinstance(kind, type) and any(
                hasattr(member, "command_marks") for member in vars(kind).values()
            ):
                for each in commands_of(object.__new__(kind)):
                    schema = msgspec.json.schema(each.parameters)
                    found[each.name] = CommandRow(each.name, each.doc, each.role, schema)
    return list(found.values())


def commands_page() -> str:
    lines = [
        "# Commands and queries",
        "",
        "One table behind the control endpoint, REST, the HMI link, `understudy ctl`, "
        "`understudy.connect()` and the page; [how to use them](../operator/commands.md). "
        "Viewers may ask queries; commands need the role *operator*. Those of a job or a device "
        "are in the cells that have it.",
    ]
    for role, title in (("viewer", "Queries"), ("operator", "Commands")):
        rows = [row for row in command_rows() if row.role == role]
        lines += ["", f"## {title}", "", f"{len(rows)} of them.", ""]
        for row in rows:
            lines += [f"### `{row.name}`", "", f"{_sentence(row.doc)}", ""]
            if about := _whole(row.parameters).get("description"):
                lines += [escaped(" ".join(about.replace("``", "`").split())), ""]
            lines += _parameters(row.parameters)
    return "\n".join(lines)


def _sentence(doc: str) -> str:
    return escaped(f"{doc[:1].upper()}{doc[1:]}.")


def _whole(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found: Mapping[str, Any] = schema.get("$defs", {}).get(name, schema)
    return found


def _parameters(schema: Mapping[str, Any]) -> list[str]:
    whole = _whole(schema)
    properties, required = whole.get("properties", {}), whole.get("required", [])
    if not properties:
        return []
    rows = ["| parameter | value | default | unit |", "|---|---|---|---|"]
    for name, each in properties.items():
        default = "*required*" if name in required else _shown(each.get("default"))
        rows.append(f"| `{name}` | {in_words(each)} | {default} | {unit_of(name)} |")
    return [*rows, ""]


def in_words(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words."""
    if "anyOf" in schema:
        return " or ".join(in_words(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2].rpartition('.')[2]}`"
    kind = schema.get("type", "anything")
    if kind == "array":
        items = schema.get("items") or schema.get("prefixItems")
        if isinstance(items, list):
            return f"list of {len(items)}"
        return f"list of {in_words(items)}" if items else "list"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    names = {"integer": "whole number", "null": "nothing", "string": "text", "object": "mapping"}
    return " ".join([names.get(kind, str(kind)), *bounds])


def rest_page() -> str:
    document = openapi(command_rows())
    lines = [
        "# REST",
        "",
        "Addresses below the address of the page. Queries are GET or POST, commands POST with a "
        "JSON body; [access](../hmi/process.md#rest). `/api/docs` of a running cell shows the "
        "same rows to try, `/api/openapi.json` is the OpenAPI document.",
        "",
        "| address | methods | role | |",
        "|---|---|---|---|",
        *(f"| `{path}` | GET | viewer | for supervisors |" for path in MONITORING),
        "| `/api/openapi.json` | GET | viewer | this table as OpenAPI |",
        "| `/api/docs` | GET | viewer | this table as a page |",
    ]
    for path, methods in document["paths"].items():
        operation = next(iter(methods.values()))
        names = ", ".join(method.upper() for method in methods)
        name = path.removeprefix("/")
        what = f"[{escaped(operation['summary'])}](commands.md#{name})"
        lines.append(f"| `/api{path}` | {names} | {operation['tags'][0]} | {what} |")
    lines += ["", "## Answers", "", "| status | |", "|---|---|"]
    responses = next(iter(next(iter(document["paths"].values())).values()))["responses"]
    lines += [f"| {status} | {each['description']} |" for status, each in responses.items()]
    return "\n".join([*lines, ""])


# ── command line ──


def cli_page() -> str:
    lines = [
        "# The command line",
        "",
        "Every command with its arguments and options, as its `--help` has them; "
        "[examples](../cli.md). `--quiet`, `--verbose` and `--help` mean the same in all.",
    ]
    for name, row in cli_rows().items():
        command = load(name)
        lines += ["", f"## {name}", "", row.summary, ""]
        lines += ["```sh", f"understudy {row.example}", "```", ""]
        group = getattr(command, "commands", None)
        for each in (group or {name: command}).values():
            if group:
                lines += [f"### {name} {each.name}", "", _first(each.help), ""]
            lines += _options(each)
    return "\n".join([*lines, ""])


def _first(text: str | None) -> str:
    """The first paragraph of a help text."""
    return escaped(" ".join((text or "").partition("\n\n")[0].split()))


def _options(command: Any) -> list[str]:
    rows = []
    for each in command.params:
        if getattr(each, "hidden", False) or each.name in ("quiet", "verbose", "help"):
            continue
        about = " ".join((getattr(each, "help", None) or "").split())
        if each.param_type_name == "argument":
            name = f"`{(each.metavar or each.name.upper()).replace('|', chr(92) + '|')}`"
        else:
            name = ", ".join(f"`{option}`" for option in sorted(each.opts, key=len, reverse=True))
        default = each.default
        plain = isinstance(default, str | int | float) and not isinstance(default, bool)
        shown = f"`{default}`" if plain and default != "" else ""
        rows.append(f"| {name} | {escaped(about)} | {shown} |")
    return ["| | | default |", "|---|---|---|", *rows, ""] if rows else []


# ── state diagrams ──


def states_page() -> str:
    """The diagrams of all pages. Tests compare each with the table of transitions in the code."""
    lines = ["# State diagrams", "", "Each is printed from the table that the code runs.", ""]
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        blocks = re.findall(r"```mermaid\nstateDiagram.*?```", text, re.DOTALL)
        if blocks:
            title = re.findall(r"^# (.*)$", text, re.MULTILINE)[0]
            link = f"../{page.relative_to(DOCS)}"
            lines += [f"## [{title}]({link})", ""]
            lines += [line for block in blocks for line in (block, "")]
    return "\n".join(lines)
