"""Motion planning: a motion is planned once on the time axis, then sampled at any time.

A `Plan` is a `Path` (geometry, and the speed limits of each piece) with a `TimeLaw` (piece and
distance along it as functions of time). Hold, stop and override replace the time law and keep the
path.

    path        pieces with their limits          lines       straight lines of the axes
    tool_path   lines and arcs of the tool        cartesian   joint path that follows a tool path
    trace       kernels of `cartesian`            arcs        arcs as grblHAL's chords
    profile     look-ahead, trapezoidal speeds    smooth      jerk-limited speed profiles
    plan        `Plan`, `TimeLaw`, odometer       stream      motion queue of a controller
    jog         axes moved by velocity            dynamics    joint torques
    warm        compiles all kernels
"""
