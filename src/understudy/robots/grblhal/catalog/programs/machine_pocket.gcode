; A frame and a round pocket for a machine behind grblHAL (X Y Z in mm, A B C in degrees).
G21 G90 G94 G17
G0 Z5
G0 X10 Y10
M3 S1000                             ; spindle
G1 Z-2 F300
G1 X40 F480
G1 Y30
G1 X10
G1 Y10
G0 Z5
G0 X30 Y20
G1 Z-2 F300
G2 X30 Y20 I-5 J0 F480               ; a full circle of 5 mm radius
M5
G0 Z5
G1 A20 F480                          ; the rotary axes
G1 B10
G0 A0 B0
G0 X0 Y0
M2
