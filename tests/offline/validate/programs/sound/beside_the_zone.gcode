; cell: zone
; expect: nothing
G21 G90 G94
G0 X450 Y0 Z450 A180 B0 C0
G1 X550 F3000
G28
