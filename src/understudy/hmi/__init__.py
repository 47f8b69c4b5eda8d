"""Web HMI: a process of its own that sees a cell through the HMI link and the state socket only."""
