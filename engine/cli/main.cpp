// The program `shardbook`.
#include "engine/cli/cli.hpp"

int main(int count, char** words) {
  shardbook::cli::Console console = shardbook::cli::own_console();
  return shardbook::cli::main_with({words + 1, words + count}, console);
}
