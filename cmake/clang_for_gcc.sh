# What is to be launched instead of g++, for files that CMake would have g++ compile:
#
#   sh clang_for_gcc.sh [ccache] clang++ -- g++ FLAG... FILE
#
# is a CXX_COMPILER_LAUNCHER (tests/CMakeLists.txt). g++'s flags are clang++'s, but for some that make no difference to what is made.
# What precompiled headers make of templates is made with them, as CMake has it where it knows that the compiler is clang.
with=
while [ "$1" != -- ]; do
  with="$with $1"
  shift
done
shift 2
# shellcheck disable=SC2086 # a compiler, or ccache and a compiler
exec $with "$@" -fpch-instantiate-templates -Qunused-arguments -Wno-unknown-warning-option -Wno-gnu-zero-variadic-macro-arguments
