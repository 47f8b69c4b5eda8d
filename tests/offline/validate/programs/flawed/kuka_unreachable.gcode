; cell: kuka_eki
; expect: unreachable at 4
G1 X0 Y0 Z100 A0 B0 C0 F100
G1 X900
G1 X0 Y0 Z50 A0 B0 C0
G28
