"""What every page shares: frame, widgets, browser session, cell state, and their scripts."""
