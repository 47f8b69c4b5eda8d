; cell: g60_welding
; expect: process at 8
G21 G90 G94
G0 X450 Y-100 Z450 A180 B0 C0
M7
M3
G1 Z445 F600
G4 P3
G1 Z440
M5
M9
