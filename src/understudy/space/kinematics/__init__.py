"""Forward and inverse kinematics of serial arms."""
