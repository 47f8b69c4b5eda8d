"""Building blocks of faces and drivers: line reader, outbox, dialogue, reconnection."""
