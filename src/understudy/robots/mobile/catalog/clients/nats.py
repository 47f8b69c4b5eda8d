"""Commands a mobile robot on NATS and prints what becomes of it. Needs: pip install nats-py"""

import asyncio
import json
import uuid

import nats
from nats.aio.msg import Msg

ROBOT = "robot-1"


async def main() -> None:
    server = await nats.connect("nats://127.0.0.1:4222")
    ended = asyncio.Event()
    number = str(uuid.uuid4())

    async def heard(message: Msg) -> None:
        ack = json.loads(message.data)
        if ack.get("correlationId") == number:
            status = ack["payload"]["status"]
            print(status, ack["payload"].get("reason", ""))
            if status in ("DONE", "FAILED", "REJECTED", "CANCELED"):
                ended.set()

    await server.subscribe(f"robot.{ROBOT}.command.ack", cb=heard)
    command = {"commandType": "STOP"}
    envelope = {"messageId": number, "correlationId": number, "payload": command}
    # JetStream stores the command until the robot has handled it.
    subject = f"robot.{ROBOT}.command.request"
    await server.jetstream().publish(subject, json.dumps(envelope).encode())
    await asyncio.wait_for(ended.wait(), 60)
    await server.close()


asyncio.run(main())
