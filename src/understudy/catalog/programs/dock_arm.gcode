; The arm of the cell dock: works where the cart has stood, after it has left.
G21 G90 G94
G28                                  ; home
G0 X600 Y-250 Z500 A180 B0 C0        ; beside the dock
G4 P8                                ; the cart comes, is unloaded and leaves
G1 X880 Y-100 Z450 F12000            ; above the dock
G1 Z300 F6000                        ; lower than the top of the cart
G1 Y100 F3000
G1 Z500 F6000
G0 X600 Y-250 Z500
G28
M2
