"""The cell page: 3D scene, time control, pins, devices and faults."""
