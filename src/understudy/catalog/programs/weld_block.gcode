; Two seams of 120 mm on the block of the default cell (robot g60, torch T1).
; X Y Z in mm, A B C the tool's rx ry rz in degrees: 180 0 0 points the torch down.
; The block's upper face is at Z170; the torch stays 15 mm above it.
G21 G90 G94
G28                                  ; home
M68 E0 Q4                            ; wire 8 m/min  (10 V = 20 m/min)
M68 E1 Q5.5                          ; arc 22 V      (10 V = 40 V)
G0 X590 Y270 Z260 A180 B0 C0         ; above the first seam
M7                                   ; gas; it flows while the torch comes down
G1 X590 Y270 Z185 A180 B0 C0 F6000
M3                                   ; arc; motion goes on when it burns steadily
G1 X710 F900                         ; 15 mm/s
M5                                   ; crater and burnback, the torch stands
G1 Z230 F6000
G1 X710 Y330                         ; over to the second seam
G1 Z185
M3
G1 X590 F900
M5
G4 P1                                ; post-flow over the crater
M9
G1 Z260 F6000
G28
M2
