; cell: links
; expect: io at 5
G21 G90 G94
M64 P9
M66 P9 L3 Q1
G0 X450 Y-100 Z450 A180 B0 C0
