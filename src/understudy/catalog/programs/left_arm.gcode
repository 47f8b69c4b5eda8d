; The left arm of the cell two_arms: a rectangle on the post, then the middle is free for the right arm.
; X Y Z in mm in the cell, A B C the tool's rx ry rz in degrees: 180 0 0 points the torch down.
G21 G90 G94
G28                                  ; home
G0 X600 Y-250 Z450 A180 B0 C0        ; beside the middle
G1 X870 Y-40 Z300 F12000             ; into the middle, above the post
G1 Z230 F6000
G1 Y40 F1200
G1 X930
G1 Y-40
G1 X870
G1 Z300 F6000
G1 X600 Y-250 Z450 F12000            ; out of the middle
G4 P0.05                             ; stands: M64 would set its output before the motion ends
M64 P20                              ; MIDDLE_FREE: the right arm may enter
M66 P20 L3 Q60                       ; MAY_ENTER: until the right arm has left the middle
G1 X870 Y40 Z300 F12000              ; a second look at the post
G1 X600 Y-250 Z450
G28
M2
