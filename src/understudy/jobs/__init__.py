"""Work that runs on REAL and MOCK alike: what a job works on is passed in."""
