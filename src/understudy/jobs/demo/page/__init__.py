"""The demo panel of the cell page."""
