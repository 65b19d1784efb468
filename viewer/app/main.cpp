// The program `shardbook-viewer`.
#include <iostream>

#include "viewer/app/command_line.hpp"

int main(int count, char** words) { return shardbook::app::main_with({words + 1, words + count}, std::cout, std::cerr); }
