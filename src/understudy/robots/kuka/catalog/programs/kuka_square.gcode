; A square and a raised stroke for the KUKA (tool 1, base 5). X Y Z in mm, A B C in degrees as KUKA
; writes them (rz ry rx), F in mm/s.
G21 G90
T1 G58                               ; tool 1, base 5
G1 X0 Y0 Z100 A0 B0 C0 F100
G1 X0 Y-80 Z60
G1 X120
G1 Y80
G1 X0
G1 Y-80
G1 Z120
G1 X60 Y0 Z160
G1 X0 Y0 Z100
M2
