; cell: kuka_table
; expect: nothing
T1 G58
G1 X0 Y0 Z300 A0 B0 C0 F100
G55
G1 X0 Y0 Z300
T2
G1 Z250
G28
