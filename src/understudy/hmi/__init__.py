"""The page's process: it talks to a cell through the HMI link and the state socket alone."""
