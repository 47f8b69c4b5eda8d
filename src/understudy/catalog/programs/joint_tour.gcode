; Every joint of an arm, one after the other and then together. A B C U V W are J1 … J6 in degrees.
; It knows no surroundings: validate it for your own arm and cell before you rely on it.
G21 G90 G94 M428
G1 A0 B0 C0 U0 V0 W0 F3000
G1 A25 F2400
G1 A-25
G1 A0
G1 B-12
G1 B0
G1 C12
G1 C0
G1 U25
G1 U0
G1 V25
G1 V-25
G1 V0
G1 W45
G1 W0
G1 A15 B-10 C10 U15 V15 W30
G1 A-15 U-15 V-15 W-30
G1 A0 B0 C0 U0 V0 W0
M2
