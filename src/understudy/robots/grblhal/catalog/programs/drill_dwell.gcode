(Counterbores with a dwell at the bottom)
(Begin preamble)
G17 G90
G21
(Begin operation: Fixture)
(Path: Fixture)
G10 L2 P1 X-150 Y-120 Z-60
G54
(Finish operation: Fixture)
(Begin operation: TC: counterbore 10 mm)
(Path: TC: counterbore 10 mm)
(Begin toolchange)
M5
M6 T1
M3 S1800
(Finish operation: TC: counterbore 10 mm)
(Begin operation: Drilling)
(Path: Drilling)
(Begin Drilling)
G0 Z15.000
G90
G98
G0 X20.000 Y20.000
G82 X20.000 Y20.000 Z-4.000 R3.000 P0.500 F120.000
G82 X80.000 Y20.000 Z-4.000 R3.000 P0.500 F120.000
G82 X80.000 Y60.000 Z-4.000 R3.000 P0.500 F120.000
G82 X20.000 Y60.000 Z-4.000 R3.000 P0.500 F120.000
G80
(Begin operation: Drilling of a pattern)
G99
G82 X35.000 Y40.000 Z-2.500 R2.000 P0.250 F90.000
X45.000
X55.000 P0.400
X65.000 Z-3.500
G80
G0 Z15.000
(Finish operation: Drilling)
(Begin postamble)
M5
G53 G0 Z0
G53 G0 X0 Y0
G17 G90
M30
