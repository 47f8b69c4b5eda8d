"""Fifty mistakes of newcomers: what they write, what Understudy says, and what to do.

`python -m tests.mistakes` writes docs/mistakes.md anew.
"""

from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs/mistakes.md"
ROBOT = "robots:\n  bench: {kind: text_robot, faces: {text_tcp: {port: 5000}}}\n"
OBJECT = "{name: a, type: box, position_mm: [0, 0, 0], dimensions_mm: [1, 1, 1]}"


class Mistake(NamedTuple):
    """`words`: the command line. `text`: the file that it names, `cell.yaml` or `part.gcode`.
    `says`: part of the message. `cure`: the next step. `code`: exit code."""

    what: str
    words: str
    says: str
    cure: str
    text: str = ""
    code: int = 2


def cell(what: str, text: str, says: str, cure: str) -> Mistake:
    return Mistake(what, "check cell.yaml", says, cure, text)


def program(what: str, text: str, on: str, says: str, cure: str) -> Mistake:
    return Mistake(what, f"validate part.gcode --cell {on}", says, cure, text, code=1)


def rule(text: str) -> str:
    return f"{ROBOT}scenario: {{rules: {{lost: {{{text}}}}}}}\n"


def objects(text: str) -> str:
    return f"{ROBOT}environment: {{objects: [{text}]}}\n"


CELLS = [
    cell("a key is misspelt", "robotss: {}\n" + ROBOT,
         "did you mean 'robots'?", "Take the key that is proposed."),
    cell("a robot has a key of another kind", "robots:\n  a: {kind: text_robot, speeed: 3}\n",
         "allowed: kind, faces", "Take a key of the list; it is that of this kind."),
    cell("a kind is misspelt", "robots:\n  a: {kind: text_robto}\n",
         "did you mean 'text_robot'?", "Take the kind that is proposed."),
    cell("a robot has no kind", "robots:\n  a: {faces: {}}\n",
         "robots.a.kind: this key is missing", "Add `kind`: arm, kuka, machine, mobile …"),
    cell("a face is misspelt", "robots:\n  a: {kind: text_robot, faces: {text_tpc: {}}}\n",
         "did you mean 'text_tcp'?", "Take the face that is proposed."),
    cell("a port is too large", ROBOT.replace("5000", "99999"),
         "allowed: a whole number ≥ 0 and ≤ 65535", "Choose another; 0 takes a free one."),
    cell("a port is a word", ROBOT.replace("5000", "five"),
         "this does not fit (got 'five'); allowed: a whole number", "Write a number."),
    cell("two endpoints have one port", "control: {port: 5000}\n" + ROBOT,
         "allowed: another port, or 0 for a free one", "Change one of the two."),
    cell("there are no robots", "seed: 1\n",
         "robots: this key is missing; allowed: a mapping",
         "Add `robots:`, or start with `understudy new`."),
    cell("the file is a list", "- a\n",
         "allowed: a mapping", "Begin with keys, as `robots:`."),
    cell("a line begins with a tab", "robots:\n\ta: {kind: text_robot}\n",
         "allowed: spaces in place of tabs", "Indent by spaces."),
    cell("a key stands twice", ROBOT + ROBOT,
         "first in line 1; allowed: each key once", "Put both under one key."),
    cell("two colons in a line", "robots: a: x\n",
         "allowed: one key in a line, or {…} around several",
         "Put the second key into the next line."),
    cell("a fault is misspelt", rule("fault: comm_timeout, on: bench"),
         "allowed: message_loss", "Take a fault of the list; `understudy faults` explains them."),
    cell("a rule is for a robot that is not there", rule("fault: position_noise, on: bnech"),
         "did you mean 'bench'?", "Take the name that is proposed."),
    cell("a probability is in percent",
         rule("fault: communication_timeout, on: bench.text_tcp, probability: 5"),
         "allowed: a number ≥ 0 and ≤ 1", "Write 0.05 for 5 %."),
    cell("the page is open to the network", ROBOT + "hmi: {host: 0.0.0.0}\n",
         "set hmi.token or UNDERSTUDY_HMI_TOKEN", "Set a token, or leave `host` out."),
    cell("a token is short", ROBOT + "hmi: {host: 0.0.0.0, token: abc}\n",
         "allowed: 16 or more", "Make one: `openssl rand -hex 16`."),
    cell("a model is not there", "robots:\n  a: {kind: arm, model: nothing.urdf}\n",
         "allowed: a shipped robot, or a file beside the cell file",
         "Name a file beside the cell file."),
    cell("an object has an unknown type", objects(OBJECT.replace("box", "bx")),
         "did you mean 'box'?", "Take the type that is proposed."),
    cell("a position has two numbers", objects(OBJECT.replace("[0, 0, 0]", "[0, 0]")),
         "allowed: a list of 3", "Write x, y and z."),
    cell("two objects have one name", objects(f"{OBJECT}, {OBJECT}"),
         "allowed: a name of its own for each", "Rename one of them."),
    cell("the program of a robot is unknown", ROBOT.replace("robot,", "robot, program: none_such,"),
         "allowed: dock_arm", "Take a shipped program of the list, or the path of a file."),
    cell("a server has no scheme",
         "nats: {servers: ['localhost:4222']}\nrobots:\n  r: {kind: mobile, file: amr.json}\n",
         "allowed: a text like ^(nats|tls)://", "Write `nats://localhost:4222`."),
    cell("a device is misspelt", "robots:\n  a: {kind: text_robot, weldr: {}}\n",
         "did you mean 'welder'?", "Take the device that is proposed."),
    cell("a seed is negative", "seed: -1\n" + ROBOT,
         "allowed: a whole number ≥ 0", "Choose a number from 0 on."),
    cell("an included file is not there", ROBOT + "include: {simulation: nothing.yaml}\n",
         "no such file; looked for", "Name a file beside the cell file."),
]  # fmt: skip
PROGRAMS = [
    program("a target is out of reach", "G1 X9000 Y0 Z500 F1000\n", "g60_welding",
            "the arm spans", "Move the part, or the target into that range."),
    program("metres in place of millimetres", "G1 X0.9 Y0 Z0.5 F1000\n", "g60_welding",
            "are these metres? X, Y, Z are in mm", "Write 900 for 0.9 m."),
    program("moves of a text robot for an arm", "MOVE_ABS 100,0,150,0,0,0\n", "g60_welding",
            "hint: these are moves of a text robot", "Choose its cell: `--cell text_robot`."),
    program("G-code for a text robot", "G1 X10 F100\n", "text_robot",
            "allowed: MOVE_ABS, MOVE_REL, HOME", "Write its commands, or choose an arm."),
    program("no feed", "G1 X10\n", "grblhal_6axis",
            "G1: needs a feed", "Add F to this line or before it."),
    program("a word without a number", "G1 Xabc F10\n", "grblhal_6axis",
            "X needs a number", "Write a number behind the letter."),
    program("a code that the controller has not", "G77 X1\n", "grblhal_6axis",
            "is not supported by this controller", "Replace it; the robot's page lists its codes."),
    program("an arc without a centre", "G2 X10 F100\n", "grblhal_6axis",
            "needs I or J, or R", "Add I and J, or R."),
    program("a move with two numbers", "MOVE_ABS 100,0\n", "text_robot",
            "MOVE_ABS takes x,y,z,rx,ry,rz", "Give all six."),
    program("the arc without gas", "M3\nG1 X800 F500\n", "g60_welding",
            "the arc was started with the gas closed", "Open the gas before M3."),
    program("the arc is left on", "M8\nM3\nG1 X800 F500\n", "g60_welding",
            "the arc is left on at the end", "End the seam with M5."),
]  # fmt: skip
COMMANDS = [
    Mistake("a command is misspelt", "rnu", "did you mean 'run'?", "Take the proposed command."),
    Mistake("an option is misspelt", "run text_robot --prot 5000",
            "did you mean '--port'?", "Take the proposed option."),
    Mistake("a cell is unknown", "run text_robt",
            "did you mean 'text_robot'?", "`understudy cells` lists the shipped ones."),
    Mistake("a cell file is not there", "run my_cel.yaml",
            "allowed: a file that exists",
            "Correct the path, or write one: `understudy new my_cel`."),
    Mistake("a program is not there", "validate missing.gcode",
            "allowed: a file that exists", "Correct the path."),
    Mistake("a robot is not in the cell", "validate part.gcode --robot g6 --cell default",
            "did you mean 'g60'?", "Take a robot of the list.", "G1 X10\n"),
    Mistake("a rate is a word", "run text_robot --rate fast",
            "allowed: a number from 0 to 1000000, max or step", "Write 1 for real time."),
    Mistake("a port for a face that is not there", "run text_robot --port bench.tcp=5000",
            "did you mean 'bench.text_tcp'?", "Take the proposed endpoint."),
    Mistake("a shard that is none", "run fleet --shard 9/3",
            "allowed: K/N with 1 ≤ K ≤ N", "Count shards from 1 on."),
    Mistake("mobile robots of a cell without any", "run text_robot --robots 5",
            "has no mobile robots (got 5); allowed", "Choose `fleet` or `hall`."),
    Mistake("a dialect is unknown", "validate part.gcode --dialect foo",
            "allowed: arm, grblhal", "Leave the option out: the robot has its own.", "G1 X10\n"),
    Mistake("a template is unknown", "new cell.yaml --for nothing",
            "allowed: amr, grbl, kuka", "Take one of the list."),
    Mistake("a robot to send to is misspelt", "send grblhall part.gcode --to 127.0.0.1:9",
            "did you mean 'grblhal'?", "Take the proposed name.", "G1 X10\n"),
    Mistake("a face is unknown", "faces grbl",
            "did you mean 'grblhal'?", "`understudy faces` lists them."),
    Mistake("no argument", "check", "check -h' for help", "Name a cell."),
    Mistake("an argument too many", "cells extra",
            "allowed: `understudy cells --help`", "Leave it out."),
]  # fmt: skip
GROUPS = {"In a cell file": CELLS, "In a program": PROGRAMS, "On the command line": COMMANDS}

HEAD = """# Mistakes, what Understudy says, and what to do

The tests try each row; the message is part of what is printed. Exit codes: 2 for a wrong cell
file or command line, 1 for a program that fails.
"""


def text() -> str:
    lines = [HEAD]
    for title, rows in GROUPS.items():
        lines += [f"## {title}", "", "| mistake | message | what to do |", "|---|---|---|"]
        for row in rows:
            says = row.says.replace("|", "\\|")
            quote = "``" if "`" in says else "`"
            pad = " " if says.endswith("`") else ""
            lines.append(f"| {row.what} | {quote}{pad}{says}{pad}{quote} | {row.cure} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(text())
