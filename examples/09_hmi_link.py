"""The HMI link from any client of ZeroMQ: commands on one socket, status on another."""

import json

import zmq

from understudy.app.stand_in import StandIn

with StandIn("g60_welding", rate=1.0) as cell, zmq.Context() as context:
    # Against `understudy run`: tcp://127.0.0.1:5560 and tcp://127.0.0.1:5561.
    commands, status_socket = context.socket(zmq.REQ), context.socket(zmq.SUB)
    commands.connect(cell.endpoints["g60.hmi_link"])
    status_socket.connect(cell.endpoints["g60.hmi_link.status"])
    status_socket.subscribe(b"")

    def ask(type_: str, **payload: object) -> dict[str, object]:
        commands.send_json({"type": type_, "id": 1, "payload": payload})
        answer: dict[str, object] = json.loads(commands.recv())
        return answer

    print(ask("PING")["type"])
    print(ask("GET_JOINT_POSITIONS")["payload"])
    print(ask("COMMAND", command="enable", parameters={"robot": "g60"})["type"])
    move = {"robot": "g60", "line": "G1 A45 F2000"}
    print(ask("COMMAND", command="send_gcode", parameters=move)["type"])
    print(ask("COMMAND", command="emergency_stp")["payload"])

    status = json.loads(status_socket.recv())["payload"]["robots"]["g60"]
    print(status["state"], [round(angle, 1) for angle in status["joints_deg"]])
    for socket in (commands, status_socket):
        socket.close(0)
