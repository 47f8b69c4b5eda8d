"""The vision process: it takes pictures, finds objects in them, and answers over ZeroMQ."""
