"""Wire dialects: bytes in, bytes out. No socket, no physics, no clock."""
