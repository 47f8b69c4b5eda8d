; cell: workshop
; expect: unsupported at 5
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
G84 Z200 R300 F600
