"""Where things are: poses, chains, inverse kinematics, shapes. Knows nothing of time."""
