; cell: bare
; expect: nothing
G21 G90 G94
G28
G1 X720 Y0 Z995 F3000
G1 X770 Y0 Z995
G28
