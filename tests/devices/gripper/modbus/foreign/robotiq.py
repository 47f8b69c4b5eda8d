"""A Robotiq gripper commanded by pyrobotiqgripper: activate, close, go half way, open. Arguments:
`RTU` and a serial port, or `RTU_VIA_TCP` and a port of this machine. Prints what it has read."""

import json
import sys

import pyrobotiqgripper as robotiq  # type: ignore[import-not-found]


def main(kind: str, place: str) -> None:
    where = {"com_port": place} if kind == "RTU" else {"tcp_port": int(place)}
    gripper = robotiq.RobotiqGripper(connection_type=kind, **where)
    seen = {"before": gripper.isActivated()}
    gripper.activate()
    seen["activated"] = gripper.isActivated()
    for name, move in {
        "closed": gripper.close,
        "half": lambda: gripper.move(128, speed=100, force=50),
        "open": gripper.open,
    }.items():
        move()
        status = gripper.status()
        seen[name] = {key: status[key] for key in ("gOBJ", "gPO", "gFLT", "gPR")}
    gripper.calibrate_mm(0, 85)
    gripper.move_mm(40)
    seen["mm"] = gripper.position_mm()
    gripper.disconnect()
    print(json.dumps(seen))


main(*sys.argv[1:])
