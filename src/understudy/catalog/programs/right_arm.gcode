; The right arm of the cell two_arms: works on its own side until the left arm has left the middle.
; X Y Z in mm in the cell, A B C the tool's rx ry rz in degrees: 180 0 0 points the torch down.
G21 G90 G94
G28                                  ; home
G0 X1200 Y250 Z450 A180 B0 C180      ; on its own side
G1 Y350 F6000
G1 Y250
M66 P20 L3 Q60                       ; MAY_ENTER: until the left arm has left the middle
G1 X930 Y40 Z300 F12000              ; into the middle, above the post
G1 Z230 F6000
G1 Y-40 F1200
G1 Y40
G1 Z300 F6000
G1 X1200 Y250 Z450 F12000            ; out of the middle
G4 P0.05
M64 P20                              ; MIDDLE_FREE: the left arm may enter
G28
M2
