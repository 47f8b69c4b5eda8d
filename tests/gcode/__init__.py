"""The language of the machines, as a specification."""
