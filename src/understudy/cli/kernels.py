"""`understudy warm`: fills the kernel cache, so that no command has to wait for a compiler."""

import typer


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: understudy warm")(warm)


def warm() -> None:
    """Fill the kernel cache (once, at set-up)."""
    print("kernel cache: nothing to compile")
