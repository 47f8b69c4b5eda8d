; cell: g60_welding
; expect: syntax at 4
G21 G90 G94
M66 P4 L3
G0 X450 Y-100 Z450 A180 B0 C0
