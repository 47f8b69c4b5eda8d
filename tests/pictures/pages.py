"""Pictures of the cell page, the program page, the plots and the log."""

from pathlib import Path

from tests.browsers import RunningCell, Screen
from tests.pictures import Picture, advance_until

import understudy

PROGRAMS = Path(understudy.__file__).parent / "catalog" / "programs"
WELDING = "g60_welding"
SEAM = PROGRAMS / "weld_block.gcode"
WITHOUT_GAS = """\
; The arc without gas, and the torch too deep.
G21 G90 G94
G28
G0 X450 Y-100 Z450 A180 B0 C0
G1 X450 Y-100 Z350 A180 B0 C0 F6000
M68 E0 Q4
M68 E1 Q5.5
M3
G1 Y100 Z250 F600
M5
G0 X450 Y100 Z450 A180 B0 C0
G28
M2
"""
DEEP_LINE = 9
PLOT_SECONDS = 60.0
"""What the plots show at first."""
POST = {
    "name": "post",
    "type": "box",
    "position_mm": [450, 260, 300],
    "dimensions_mm": [60, 60, 500],
}
TO_THE_POST = """\
G21 G90 G94
G0 X450 Y0 Z450 A180 B0 C0
G1 X450 Y250 Z450 F6000
"""


def afresh(cell: RunningCell) -> None:
    """Ends what the picture before has left."""
    for command in ("stop", "reset", "start", "clear_collisions"):
        cell.ask(command)
    cell.ask("advance", seconds=2.0)  # the arc goes out
    cell.ask("set_joint_positions", robot="g60", joints_deg=[0] * 6)
    cell.ask("enable", robot="g60")


def run(cell: RunningCell, text: str, name: str) -> None:
    afresh(cell)
    cell.ask("load_program", robot="g60", text=text, name=name)
    cell.ask("run_program", robot="g60")


def arc_on(cell: RunningCell) -> bool:
    return bool(cell.ask("status")["parts"]["g60.welder"]["arc_on"])


def weld(screen: Screen, cell: RunningCell, seconds: float) -> None:
    """Runs the welding program until some seconds after the arc has been struck."""
    run(cell, SEAM.read_text(), SEAM.name)
    advance_until(screen, cell, lambda: arc_on(cell), step_s=0.1, what="the arc")
    for _ in range(round(10 * seconds)):  # the weld on the page is drawn from what it receives
        cell.ask("advance", seconds=0.1)
        screen.page.wait_for_timeout(50)
    screen.page.wait_for_timeout(1500)


def welding(screen: Screen, cell: RunningCell) -> None:
    weld(screen, cell, 3.0)


def plotted(screen: Screen, cell: RunningCell) -> None:
    """The whole welding program, and nothing before it."""
    afresh(cell)
    cell.ask("advance", seconds=PLOT_SECONDS)
    run(cell, SEAM.read_text(), SEAM.name)

    def ended() -> bool:
        return bool(cell.ask("program", robot="g60")["state"] == "done")

    advance_until(screen, cell, ended, step_s=1.0, what="the end")
    screen.page.wait_for_timeout(2500)


def lost_arc(screen: Screen, cell: RunningCell) -> None:
    weld(screen, cell, 3.0)
    cell.ask("inject", fault="arc_fault", on="g60.welder")
    cell.ask("advance", seconds=1.0)
    screen.until(lambda: "arc" in screen.text("alarms").lower(), "the alarm")
    screen.page.wait_for_timeout(1500)


def collided(screen: Screen, cell: RunningCell) -> None:
    """The torch is driven into a post."""
    cell.ask("add_object", object=POST)
    run(cell, TO_THE_POST, "to_the_post")

    def touches() -> bool:
        return bool(cell.ask("metrics")["collisions_detected"])

    advance_until(screen, cell, touches, step_s=0.05, what="the contact")
    screen.until(lambda: "post" in screen.scene["red"], "the post in red")
    screen.reads("alarm", "collides with post")
    screen.page.wait_for_timeout(1500)


def checked(screen: Screen, cell: RunningCell) -> None:
    """The findings of a validation; the ghost is where the torch is too deep."""
    afresh(cell)
    cell.ask("load_program", robot="g60", text=WITHOUT_GAS, name="no_gas")
    report = "window.program.report()"
    screen.until(lambda: bool(screen.page.evaluate(f"{report}.text") == WITHOUT_GAS), "the program")
    screen.page.locator('[data-does-program="validate"]').click()
    screen.page.wait_for_function(f"{report}.result")
    screen.page.locator(f'.u-violation[data-line="{DEEP_LINE}"]').first.click()
    screen.page.wait_for_function(f"{report}.line === {DEEP_LINE}")
    screen.page.wait_for_timeout(1500)


PICTURES = [
    Picture("program_check", WELDING, "/program", checked),
    Picture("hmi_welding", WELDING, "/", welding),
    Picture("program_page", WELDING, "/program", welding),
    Picture("plots_page", WELDING, "/plots", plotted),
    Picture("log_page", WELDING, "/log", lost_arc),
    Picture("hmi_collision", WELDING, "/", collided),
]
