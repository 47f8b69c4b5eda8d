"""Largest inputs that are read. Each is refused by name before the costly work on it starts."""

MEGABYTE = 1024 * 1024

LARGEST_YAML = MEGABYTE
"""Bytes of a cell file, an included file or a file of a project: some 5,000 objects."""
MOST_VALUES = 200_000
"""Values of such a file, those that it repeats by aliases included."""
MOST_ROBOTS = 500
"""Robots of a cell, and devices that stand in it by themselves."""
MOST_ROWS = 20_000
"""Robots of a cell whose kind computes all of them together, as rows of one table."""
MOST_SHARDED = 1_000_000
"""Such robots of all shards of a cell."""
LARGEST_URDF = 8 * MEGABYTE
"""Bytes of a URDF or xacro file, and of the URDF that a xacro file expands to."""
LARGEST_MESH = 64 * MEGABYTE
"""Bytes of a mesh file."""
LARGEST_PROGRAM = 64 * MEGABYTE
"""Bytes of a program on the command line: some two million lines."""
LARGEST_SNAPSHOT = 64 * MEGABYTE
"""Bytes of a snapshot."""
LARGEST_CHAT = 256 * MEGABYTE
"""Bytes of a transcript that is replayed."""
LARGEST_LOG = 64 * MEGABYTE
"""Bytes to which a file grows that robots write lines to."""
LONGEST_XACRO_SECONDS = 10
"""Processor time in which a xacro file is expanded."""
MOST_XACRO_MEMORY = 1024 * MEGABYTE
"""Bytes of memory for that."""
