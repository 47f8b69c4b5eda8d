"""The runtime of mobile robots, the same for REAL and MOCK: messages, commands, safety, status."""
