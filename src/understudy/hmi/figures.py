"""Numbers as pages show them."""


def fixed(value: float, digits: int) -> str:
    """A number with this many decimals; a value that rounds to zero has no sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}"
