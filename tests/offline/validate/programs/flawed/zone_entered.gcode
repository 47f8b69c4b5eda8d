; cell: zone
; expect: zone at 4
G21 G90 G94
G0 X450 Y-450 Z450 A180 B0 C0
G0 X450 Y0 Z450
