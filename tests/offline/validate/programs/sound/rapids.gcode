; cell: g60_welding
; expect: nothing
G21 G90 G94
G0 X450 Y-100 Z450 A180 B0 C0
G0 X450 Y100 Z450
G28
