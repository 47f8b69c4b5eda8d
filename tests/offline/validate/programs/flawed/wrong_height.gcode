; cell: g60_welding
; expect: collision at 5
G21 G90 G94
G0 X450 Y-100 Z450 A180 B0 C0
G1 Z320 F3000
G1 Z450
