"""The tools of an arm: their table, and changes at the docks of a tool changer."""
