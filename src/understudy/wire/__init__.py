"""The edge: sockets, wall clock, transcripts. Carries bytes and understands none of them."""
