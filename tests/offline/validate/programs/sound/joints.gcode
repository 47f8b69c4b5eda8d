; cell: bare
; expect: nothing
G21 G90 G94
G1 A30 B-20 C40 F3000
G1 A-30 U20 V30 W90
G0 A0 B0 C0 U0 V0 W0
