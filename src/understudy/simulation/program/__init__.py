"""Execution of programs: the requests of each line in order, on a motion queue."""
