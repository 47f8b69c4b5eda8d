; cell: kuka_table
; expect: collision at 4
G1 X0 Y0 Z150 A0 B0 C0 F100
G1 Y200
G1 Y0
G28
