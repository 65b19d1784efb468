// Allocations of this test program are counted as those of program are.
#include "tests/program/allocations.cpp"
