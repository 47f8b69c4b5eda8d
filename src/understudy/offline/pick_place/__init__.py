"""Pick & place without a running cell: poses and moves of a cycle, as the job and the check use
them."""
