"""`understudy warm`: fills the kernel cache, so that no command has to wait for a compiler."""

import time

import typer


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: understudy warm")(warm)


def warm() -> None:
    """Fill the kernel cache (once, at set-up)."""
    from understudy.config.files import shipped_robots
    from understudy.gcode import reader
    from understudy.motion.dynamics import dynamics
    from understudy.motion.warm import warm as warm_motion
    from understudy.space.chain import chain
    from understudy.space.urdf import read
    from understudy.space.warm import warm as warm_space

    begun = time.monotonic()
    reader.warm()
    for name, file in shipped_robots().items():
        arm = chain(read(file.read_text(encoding="utf-8"), file=name))
        warm_space(arm)
        warm_motion(dynamics(arm))
    print(f"kernel cache filled in {time.monotonic() - begun:.1f} s")
