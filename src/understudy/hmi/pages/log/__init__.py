"""The log page: alarms, events and wire traffic."""
