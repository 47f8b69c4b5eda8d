; cell: workshop
; expect: collision at 6
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
M2
G1 Z20 F6000
G0 Z450
