"""Builds the devices of a robot, for a running cell and for the offline check alike."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from understudy.errors import located_at
from understudy.ports.device import CarriesDevices, Device, Mount
from understudy.registry import module_of


def build_devices(robot: str, devices: Mapping[str, Any], mount: Mount) -> dict[str, Device]:
    """The devices of a robot by kind, from their configurations; each has the name
    `<robot>.<kind>`."""
    built: dict[str, Device] = {}
    for kind, config in devices.items():
        with located_at(kind):
            built[kind] = module_of("devices", kind).build(f"{robot}.{kind}", config, mount)
    return built


def mount_devices(
    name: str, robot: Any, devices: Mapping[str, Any], cell: Mount
) -> dict[str, Device]:
    """Builds the devices of a robot on its pins and its tool, and mounts them on it. ``cell``: what
    they get of the cell."""
    mount = replace(
        cell,
        pins=getattr(robot, "io", None),
        tool_path=getattr(robot, "tool_path", None),
        robot=name,
        tool_pose=getattr(robot, "tcp", None),
        tools=getattr(robot, "tools", None),
    )
    built = build_devices(name, devices, mount)
    if isinstance(robot, CarriesDevices):
        for kind, device in built.items():
            robot.mount(kind, device)
    return built


def program_wait_s(devices: Mapping[str, Any], on: bool) -> float:
    """Seconds that a program waits at M3 (``on``) or M5, without faults."""
    modules = ((module_of("devices", kind), config) for kind, config in devices.items())
    waits = ((getattr(m, "program_wait_s", None), config) for m, config in modules)
    return sum((float(wait(config, on)) for wait, config in waits if wait is not None), 0.0)


def offline_devices(devices: Mapping[str, Any]) -> dict[str, Any]:
    """The devices that the offline check of a program can have: all but those that only a running
    cell has."""
    return {
        kind: config
        for kind, config in devices.items()
        if not getattr(module_of("devices", kind), "ONLY_RUNNING", False)
    }


def uses_workpieces(devices: Mapping[str, Any]) -> bool:
    """Whether one of these devices takes hold of parts of the cell."""
    return any(getattr(module_of("devices", kind), "USES_WORKPIECES", False) for kind in devices)
