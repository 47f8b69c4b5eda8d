; cell: heavy
; expect: torque at 4
G21 G90 G94
G0 A0 B0 C0 U0 V30 W0
