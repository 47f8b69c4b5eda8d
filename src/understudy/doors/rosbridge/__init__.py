"""A door for ROS tools: rosbridge's protocol, without ROS. `run --rosbridge`."""
