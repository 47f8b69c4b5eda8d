; A straight seam of 200 mm for the cell g60_welding (dialect arm, torch T1).
; X Y Z in mm, A B C the tool's rx ry rz in degrees: 180 0 0 points the torch down.
G21 G90 G94
G28                                  ; home
G0 X450 Y-100 Z450 A180 B0 C0        ; above the start
M7                                   ; gas; it flows while the torch comes down
G1 X450 Y-100 Z350 A180 B0 C0 F6000  ; to the start
M68 E0 Q4                            ; wire 8 m/min  (10 V = 20 m/min)
M68 E1 Q5.5                          ; arc 22 V      (10 V = 40 V)
M3                                   ; arc; motion goes on when it burns steadily
G1 Y100 F600                         ; 10 mm/s
M5                                   ; crater and burnback, the torch stands
G4 P1                                ; post-flow over the crater
M9
G0 X450 Y100 Z450 A180 B0 C0         ; away
G28
M2
