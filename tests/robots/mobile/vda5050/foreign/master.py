"""A master control with vda5050-sdk: an order with pick and drop, a pause, a cancellation.

python master.py BROKER; prints one line of JSON.
"""

import asyncio
import json
import sys
from typing import Any

from vda5050 import Action, BlockingType, MasterClient, MasterConfig, OrderBuilder  # type: ignore[import-not-found]

AGV = "maker/robot-1"


def action(kind: str) -> Action:
    return Action(action_id=f"a-{kind}", action_type=kind, blocking_type=BlockingType.HARD)


def build(x: float, y: float) -> Any:
    """Picks, drops half a metre further on, and drives to a goal that is never reached."""
    builder = OrderBuilder(order_id="o1", manufacturer="maker", serial_number="robot-1")
    builder = builder.add_node("n0", x=x, y=y, map_id="hall", actions=[action("pick")])
    builder = builder.add_edge("n0", "n1")
    builder = builder.add_node("n1", x=x + 0.5, y=y, map_id="hall", actions=[action("drop")])
    builder = builder.add_edge("n1", "n2")
    return builder.add_node("n2", x=x + 2000.0, y=y, map_id="hall").build()


async def main(broker: str) -> None:
    states: list[Any] = []
    said: dict[str, Any] = {"errors": []}
    config = MasterConfig(broker_url=broker, validate_messages=True, validate_protocol_version=True)
    async with MasterClient(config) as master:
        master.on_state(lambda state, key: states.append(state))
        master.on_error(lambda event: said["errors"].append(str(event.error)))

        async def until(test: Any) -> Any:
            try:
                async with asyncio.timeout(30):
                    while not (states and test(states[-1])):  # noqa: ASYNC110 - a callback changes it
                        await asyncio.sleep(0.01)
            except TimeoutError:
                raise AssertionError(f"{said}; the last state: {states[-1:]}") from None
            return states[-1]

        await master.request_state(AGV)
        place = (await until(lambda state: state.agv_position)).agv_position
        answer = await master.dispatch(build(place.x, place.y), target=AGV)
        assert answer.accepted, answer
        done = await until(lambda s: s.last_node_id == "n1" and s.driving)
        said["actions"] = [f"{a.action_type}:{a.action_status.value}" for a in done.action_states]
        await master.pause(AGV)
        said["paused"] = (await until(lambda s: s.paused and not s.driving)).paused
        await master.resume(AGV)
        await until(lambda s: s.driving and not s.paused)
        await master.cancel_order(AGV)
        over = await until(lambda s: not s.node_states and not s.driving)
        said["over"] = over.order_id
    print(json.dumps(said, default=str))


asyncio.run(main(sys.argv[1]))
