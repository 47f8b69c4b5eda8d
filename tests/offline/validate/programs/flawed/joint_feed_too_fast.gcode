; cell: bare
; expect: velocity at 4
G21 G90 G94
G1 A90 F9000
G0 A0
