; cell: workshop
; expect: io at 7
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
M64 P20
G4 P2
M66 P20 L4 Q2
