; cell: workshop
; expect: nothing
%
G21 G90 G94
G0 X500 Y-200 Z450 A180 B0 C0
N10 G1 Z440 F6000 (down)
N20 M50 P0 ; no override
/N30 G1 Z430
%
