"""Clients of real things, offering the Protocols that the simulated ones offer."""

# kind → module with `Config` and `build`.
DRIVERS = {
    "grblhal": "understudy.drivers.grblhal",
    "kuka_eki": "understudy.drivers.kuka_eki",
    "text_tcp": "understudy.drivers.text_tcp",
}
