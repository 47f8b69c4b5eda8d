; cell: bare
; expect: singularity at 6
G21 G90 G94
G0 A0 B0 C0 U0 V0.2 W0
G91 G0 Y-150
G1 Y300 F1200
