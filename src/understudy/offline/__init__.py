"""Programs without a running cell: read, walk, validate, cycle time, preview."""
