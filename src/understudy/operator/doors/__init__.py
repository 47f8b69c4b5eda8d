"""The ways into a running cell: control endpoint, state socket, HMI link."""
