; cell: workshop
; expect: io at 7
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
G4 P1
M64 P20
M66 P20 L3 Q1
