"""An MQTT broker: the wire connects to it as one client.

All peers behind the broker are one session of the message face, whose peer name is `mqtt`. The
session is opened when the connection is made and closed when it is lost; then the broker publishes
the last will of the face, if it has one (`ports.LeavesWill`).

Messages are sent with QoS 0. A message with `reply_to` RETAINED is sent with QoS 1, and the broker
keeps it for later subscribers.
"""

from typing import Any

from understudy.wire.mqtt.config import Config as Config

SELECTED_BY: dict[str, Any] = {}
