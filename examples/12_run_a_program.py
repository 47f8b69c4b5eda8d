"""Every robot runs programs in its own language: load, start, pause, continue, follow the line."""

from understudy.app.stand_in import StandIn

PROGRAMS = {
    "g60": "G21 G90\nG1 A10 F3000\nG1 A0\n",  # an arm: G-code
    "kuka": "(out and back)\nG1 X40 F50\nG1 X0\n",  # a KUKA: G-code, which becomes records
    "bench": "MOVE_ABS 50,0,100,0,0,0\nMOVE_REL 0,0,20\nHOME\n",  # a text robot: its commands
}

with StandIn("default") as cell:
    cell.do("enable", robot="g60")
    for robot, text in PROGRAMS.items():
        cell.do("load_program", robot=robot, text=text, name=f"{robot}.txt")
        cell.do("run_program", robot=robot)  # also: from_line=2, step=True
        cell.forward(seconds=0.1)
        cell.do("pause_program", robot=robot)  # kuka and bench finish the lines they have
        cell.forward(seconds=5)
        assert cell.do("program", robot=robot)["state"] == "paused"
        cell.do("run_program", robot=robot)  # goes on
        cell.forward(seconds=5)
        program = cell.do("program", robot=robot)
        print(f"{robot}: {program['state']} at line {program['line']} of {program['lines']}")
        assert (program["state"], program["line"]) == ("done", 3)
