"""The modules of a robot that carry out tasks: TaskComm, TrafficComm and RouteComm."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from understudy.robots.mobile.config.robot_file import Module as ModuleName
from understudy.robots.mobile.runtime.modules import Module, RobotContext, RouteProgress
from understudy.robots.mobile.runtime.routes import Planner, RouteComm
from understudy.robots.mobile.runtime.tasks import TaskComm
from understudy.robots.mobile.runtime.traffic import NodeHold, TrafficComm


class Orchestration(NamedTuple):
    modules: Mapping[ModuleName, Module]
    """In the order in which they act at a tick."""
    progress: RouteProgress
    tasks: TaskComm
    hold: NodeHold
    """Also of a robot that does not support the modules: then they stay empty."""


def build_orchestration(
    context: RobotContext, supported: Collection[ModuleName], planner: Planner | None
) -> Orchestration:
    """The supported modules of one robot. ``planner``: of all robots; None: routes come from the
    backend alone."""
    hold = NodeHold(context)
    routes = RouteComm(context, planner)
    tasks = TaskComm(context, hold, routes if "RouteComm" in supported else None)
    traffic = TrafficComm(context, hold, tasks.steps)
    modules: dict[ModuleName, Module] = {
        "RouteComm": routes,
        "TaskComm": tasks,
        "TrafficComm": traffic,
    }
    chosen = {name: module for name, module in modules.items() if name in supported}
    return Orchestration(chosen, tasks.steps, tasks, hold)
