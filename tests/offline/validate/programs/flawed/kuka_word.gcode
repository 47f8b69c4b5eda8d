; cell: kuka_eki
; expect: unsupported at 4
G1 X0 Y0 Z100 A0 B0 C0 F100
G2 X50 Y0 I25
G1 X0 Y0 Z50 A0 B0 C0
