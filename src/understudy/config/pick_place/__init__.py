"""The sections of pickplace.yaml, which can also be keys of a robot in a cell file."""
