; cell: bare
; expect: joint_limit at 5
G21 G90 G94
G0 A0 B0 C0 U0 V30 W0
G0 A171
G0 A10 B0 C0 U0 V30 W0
