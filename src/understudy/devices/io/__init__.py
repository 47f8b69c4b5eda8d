"""Digital and analog pins."""
