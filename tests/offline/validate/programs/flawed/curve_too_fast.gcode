; cell: bare
; expect: acceleration at 5
G21 G90 G94
G0 X450 Y-100 Z450 A180 B0 C0
G2 X450 Y-100 I5 J0 F12000
