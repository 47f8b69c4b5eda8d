"""How things move: decide once on the time axis, then sample. Plans, look-ahead, braking, torques.

A plan is a *path* (where, and how fast each piece may be run) with a *law* (which piece, how far
along it, when). Hold, stop and override cut the law and never touch the path.

    path       pieces with their limits; `pause`          lines      straight lines of the axes
    ways       lines and arcs of the tool                 cartesian  a way of the tool as a path
    lookahead  entry speeds of all pieces                 arcs       arcs as grblHAL's chords
    profile    trapezoids                                 smooth     jerk-limited instead
    plan       `at`, `sample`, `until`                    stream     a controller's queue; `planned`
    brake      to rest along the path                     jog        axes by velocity
    dynamics   torques                                    warm       compile everything
"""
