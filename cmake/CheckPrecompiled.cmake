# One ctest case of a lab whose lab.hpp is precompiled: LAB, FOLDER (where shardbook_precompile_lab_header put it), COMPILER and
# the FLAGS of an exercise. g++ takes what is there. A .gch that is absent, was made with other flags, or is none at all costs
# time and nothing else. And a learner who calls wrongly what the header declares reads the same message with and without.
set(scratch ${FOLDER}/tried_${LAB})
file(REMOVE_RECURSE ${scratch})
file(MAKE_DIRECTORY ${scratch}/gch ${scratch}/headers)
set(ENV{LC_ALL} C)

# What g++ says of FILE, compiled as an exercise, goes into OUT, its exit status into CODE.
function(compile OUT CODE FILE)
  execute_process(COMMAND ${COMPILER} ${ARGN} ${FLAGS} -Werror -fsyntax-only ${scratch}/${FILE} RESULT_VARIABLE code ERROR_VARIABLE said)
  set(${OUT} "${said}" PARENT_SCOPE)
  set(${CODE} "${code}" PARENT_SCOPE)
endfunction()

# Taken: -H names each file that is read, and marks a precompiled one with "!"
file(WRITE ${scratch}/whole.cpp "#include \"labs/${LAB}/lab.hpp\"\n")
compile(said code whole.cpp -I${FOLDER} -H -Winvalid-pch)
if(NOT code EQUAL 0 OR NOT said MATCHES "! [^\n]*/labs/${LAB}/lab.hpp.gch\n")
  string(SUBSTRING "${said}" 0 2000 said)
  message(FATAL_ERROR "${FOLDER}/labs/${LAB}/lab.hpp.gch is not taken by an exercise's flags:\n${said}")
endif()

# Not taken, without a word; of a light header, for that is quicker
file(WRITE ${scratch}/headers/light.hpp "#pragma once\ninline int light() { return 1; }\n")
file(WRITE ${scratch}/made_of.hpp "#include \"light.hpp\"\n")
file(WRITE ${scratch}/light.cpp "#include \"light.hpp\"\nint one() { return light(); }\n")
function(expect_silence WHAT)
  compile(said code light.cpp -I${scratch}/gch -I${scratch}/headers)
  if(NOT code EQUAL 0 OR said)
    message(FATAL_ERROR "of a precompiled header that ${WHAT} g++ says:\n${said}")
  endif()
endfunction()
expect_silence("is absent")
file(WRITE ${scratch}/gch/light.hpp.gch "none")
expect_silence("is none")
execute_process(COMMAND ${COMPILER} -std=c++17 -O2 -g -I${scratch}/headers -x c++-header ${scratch}/made_of.hpp -o ${scratch}/gch/light.hpp.gch
                RESULT_VARIABLE code ERROR_VARIABLE said)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "a header of two lines is not precompiled:\n${said}")
endif()
expect_silence("has other flags")

# Too few arguments for what the engine declares; a member that there is not; an error of the file's own
file(WRITE ${scratch}/wrong.cpp "#include \"labs/${LAB}/lab.hpp\"
void wrong(shardbook::comm::Communicator& group, shardbook::device::Stream& stream, const shardbook::tensor::Tensor& t) {
  group.all_reduce(stream, t);
  group.all_reduced();
  int none = stream
}
")
compile(with code wrong.cpp -I${FOLDER})
compile(without code wrong.cpp)
foreach(said IN ITEMS with without)
  # One path differs: who included lab.hpp. g++ names the file that it was precompiled from.
  string(REGEX REPLACE " from [^\n]*/(wrong.cpp|${LAB}.hpp):1:\n" " from a file:\n" ${said} "${${said}}")
endforeach()
if(NOT with MATCHES "wrong.cpp:3:[0-9]+: error: no matching function" OR NOT with STREQUAL without)
  message(FATAL_ERROR "wrong calls are told in other words with a precompiled header:\n${with}\nand without:\n${without}")
endif()
file(REMOVE_RECURSE ${scratch})
