; cell: workshop
; expect: collision at 6
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
G92 Z900
G1 Z480 F6000
G1 Z900
