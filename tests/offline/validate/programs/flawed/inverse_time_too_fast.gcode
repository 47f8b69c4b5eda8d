; cell: workshop
; expect: velocity at 6
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
G93
G1 Y100 F400
G94
