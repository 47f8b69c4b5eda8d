"""The grblHAL wire, in process on virtual time."""
