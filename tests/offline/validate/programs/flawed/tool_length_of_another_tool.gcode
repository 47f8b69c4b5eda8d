; cell: workshop
; expect: collision at 6
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
G43.1 Z-100
G1 Z100 F6000
G1 Z450
