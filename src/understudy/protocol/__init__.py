"""Building blocks of faces (sessions) and of drivers (client, modbus)."""
