; cell: workshop
; expect: collision at 7
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
T2 M6
G0 X500 Y-200 Z350 A180 B0 C0
T3 M6
