"""A real grblHAL, or one that is not there: the arm's controller at the other end of a line.

    0x87                 first of all: how do things stand?
    0x85 $I $$           once it stands: what is half said is void; what is it, what can it do?
    N7G1X10F600          lines as its receive buffer has room for them, each answered once
    ?                    every poll period
    ! ~ 0x18 0x19 …      at once

Every call returns at once. A call that ends, a controller that falls silent, begins anew by itself
or answers what nobody asked ends all that is under way: lines that were said are told as failed,
the others as not sent, and nothing is ever said again. Connecting enables, homes, resets and
disturbs nothing. What the controller does while nobody hears it nobody knows: its state is Unknown.
"""

from understudy.errors import ConfigError
from understudy.robots.grblhal.driver.config import Config
from understudy.robots.grblhal.driver.driver import GrblHalDriver
from understudy.robots.grblhal.driver.jog import Limits
from understudy.robots.grblhal.driver.lines import LineWriter, Progress
from understudy.robots.grblhal.driver.picture import Tip

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
    if (config.dialect == "arm") != (writer is not None):
        raise ConfigError(
            "a program in dialect `arm` needs a writer of joint lines, another one none",
            key="dialect",
            value=config.dialect,
        )
    return GrblHalDriver(config, writer=writer, tip=tip, limits=limits)
