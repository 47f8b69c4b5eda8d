"""Driver of a real grblHAL, or of a simulated one behind a wire.

    0x87                 after connecting: full status report
    0x85 $I $$           once nothing moves: discard a partial line, ask for sizes and settings
    N7G1X10F600          lines as the receive buffer has room for them, each answered once
    ?                    every poll period
    ! ~ 0x18 0x19 …      at once

Every call returns at once. Everything in progress fails if the connection ends, if the controller
falls silent or restarts, or if it sends an answer without a request: lines that were sent are
reported as failed, the others as not sent, and no line is sent twice. Connecting does not enable,
home, reset or move anything. While there is no report the state is Unknown.
"""

from understudy.errors import ConfigError
from understudy.robots.grblhal.driver.driver import Config, GrblHalDriver
from understudy.robots.grblhal.driver.exchange import LineWriter, Progress
from understudy.robots.grblhal.driver.jog import JogLimits
from understudy.robots.grblhal.driver.state import ToolPose

__all__ = ["Config", "GrblHalDriver", "LineWriter", "Progress", "build"]


def build(
    config: Config,
    *,
    writer: LineWriter | None = None,
    tool_pose: ToolPose | None = None,
    limits: JogLimits | None = None,
) -> GrblHalDriver:
    """A driver; ``writer`` translates programs into joint lines, ``tool_pose`` returns the pose of
    the tool, ``limits`` are the joint limits for jogs in rad."""
    if (config.dialect == "arm") != (writer is not None):
        raise ConfigError(
            "a program in dialect `arm` needs a writer of joint lines, another one none",
            key="dialect",
            value=config.dialect,
        )
    return GrblHalDriver(config, writer=writer, tool_pose=tool_pose, limits=limits)
