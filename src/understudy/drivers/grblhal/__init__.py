"""A real grblHAL, or one that is not there, as an arm's controller: see `driver`."""

from understudy.drivers.grblhal.config import Config
from understudy.drivers.grblhal.driver import GrblHalDriver
from understudy.drivers.grblhal.jog import Limits
from understudy.drivers.grblhal.lines import LineWriter, Progress
from understudy.drivers.grblhal.picture import Tip
from understudy.errors import ConfigError

__all__ = ["Config", "GrblHalDriver", "LineWriter", "Progress", "build"]


def build(
    config: Config,
    *,
    writer: LineWriter | None = None,
    tip: Tip | None = None,
    limits: Limits | None = None,
) -> GrblHalDriver:
    """``writer`` turns a program into joint lines, ``tip`` says where the tool is, ``limits``: how
    far the joints may be jogged, lower and upper in rad."""
    if (config.dialect == "seed") != (writer is not None):
        raise ConfigError(
            "a program in dialect `seed` needs a writer of joint lines, another one none",
            key="dialect",
            value=config.dialect,
        )
    return GrblHalDriver(config, writer=writer, tip=tip, limits=limits)
