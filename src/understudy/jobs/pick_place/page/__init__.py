"""The pick & place page."""
