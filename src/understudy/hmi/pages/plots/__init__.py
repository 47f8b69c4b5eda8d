"""The plots page: joints, torques and device values over time."""
