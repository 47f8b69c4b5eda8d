; cell: kuka_eki
; expect: nothing
G21 G90
T1 G58
G1 X0 Y0 Z100 A0 B0 C0 F100
G1 X50
G1 Y50
G1 X0
G1 Y0
G28
M2
