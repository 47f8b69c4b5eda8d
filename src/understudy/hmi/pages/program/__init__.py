"""The program page: editor and validation, scene with ghost, manual operation."""
