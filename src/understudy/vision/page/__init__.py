"""The panel with the settings of a camera and of its detectors, which pages of jobs show."""
