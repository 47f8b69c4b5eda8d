"""What stands beside a robot, one folder each."""
