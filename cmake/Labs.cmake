# Exercises: one file of a learner's, compiled alone and linked with what checks it.
#
#   shardbook_exercise(01a FILE buckets.cpp HARNESS harness/buckets.cpp USES train check)
#   shardbook_exercise(04c FILE planted.cpp BY_SEED other.cpp ...)     other faults, for other seeds: lab.json's by_seed
#   shardbook_precompile_lab_header()                                  before these, where reading lab.hpp takes most of a compile
#
# stands in labs/NN_name/CMakeLists.txt. It makes the library exercise_01a of the harness, and writes
# build/<preset>/labs/01a.json: compiler, flags and libraries, with which `./shardbook check` builds the learner's file in
# a second or two. No learner's file is built here. With tests it adds a ctest case for the starter (which must fail), the
# solution (which must pass) and each typical wrong answer of tests/data/labs/01a (which must fail with its message).

# Packages whose targets are known only where they were looked for
find_package(ZLIB QUIET)

# All that a target needs at the link, files and flags, into OUT.
function(shardbook_link_items OUT TARGET)
  set(found "")
  set(open ${TARGET})
  set(seen "")
  while(open)
    list(POP_FRONT open item)
    # Private uses of a static library come wrapped
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if("${item}" IN_LIST seen OR "${item}" STREQUAL "" OR "${item}" MATCHES "^(::@|\\$<)")
      continue()
    endif()
    list(APPEND seen "${item}")
    if(NOT TARGET "${item}")
      # A bare name ("dl") is a library that the linker looks for
      if(NOT item MATCHES "^[-/]")
        string(PREPEND item "-l")
      endif()
      list(APPEND found "${item}")
      continue()
    endif()
    get_target_property(aliased ${item} ALIASED_TARGET)
    if(aliased)
      list(APPEND open ${aliased})
      continue()
    endif()
    get_target_property(type ${item} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND found "$<TARGET_LINKER_FILE:${item}>")
    endif()
    foreach(property INTERFACE_LINK_LIBRARIES INTERFACE_LINK_OPTIONS)
      get_target_property(items ${item} ${property})
      if(items)
        list(APPEND open ${items})
      endif()
    endforeach()
  endwhile()
  set(${OUT} "${found}" PARENT_SCOPE)
endfunction()

function(shardbook_json_list OUT)
  set(text "")
  foreach(item IN LISTS ARGN)
    string(REPLACE "\\" "\\\\" item "${item}")
    string(REPLACE "\"" "\\\"" item "${item}")
    if(text)
      set(text "${text}, \"${item}\"")
    else()
      set(text "\"${item}\"")
    endif()
  endforeach()
  set(${OUT} "[${text}]" PARENT_SCOPE)
endfunction()

# With what a learner's file is compiled, into OUT: the flags of everything else, but for the optimiser's, since the file only
# issues work.
function(shardbook_exercise_flags OUT)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  list(FILTER flags EXCLUDE REGEX "^-O")
  list(APPEND flags -std=c++20 -O1 -Wall -Wextra -Wno-missing-field-initializers -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -I${PROJECT_SOURCE_DIR})
  if(SHARDBOOK_SANITIZE)
    list(APPEND flags ${SHARDBOOK_SANITIZE_FLAGS})
  endif()
  set(${OUT} "${flags}" PARENT_SCOPE)
endfunction()

# Reads this lab's lab.hpp once, at build time, into build/<preset>/labs/precompiled/labs/NN_name/lab.hpp.gch. g++ looks for
# such a file in each folder of its search path, and takes it instead of the header where it is the first include and the
# flags are the same; else, and where there is none, it reads the header as ever, without a word.
# https://gcc.gnu.org/onlinedocs/gcc/Precompiled-Headers.html
#
# It costs 3 s and 67 MB of disk; with it a file of lab 02, of 83 000 lines as preprocessed, compiles in 0.3 s instead of 1.4.
# So no lab whose header is light asks for it, and sanitized builds, which compile only solutions, go without. clang looks for
# no such files.
#
# g++ does not see that a header within it has changed since; the depfile does. So whatever takes the recipe builds
# exercise_NNa before that (engine/workbook/exercise.cpp). It gets its name when it is whole: a part of one ends a compile.
function(shardbook_precompile_lab_header)
  if(SHARDBOOK_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  get_filename_component(lab ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(folder ${CMAKE_BINARY_DIR}/labs/precompiled)
  set(made ${folder}/labs/${lab}/lab.hpp.gch)
  # A main file with #pragma once gets a warning
  set(read ${folder}/${lab}.hpp)
  file(CONFIGURE OUTPUT ${read} CONTENT "#include \"labs/${lab}/lab.hpp\"\n")
  file(MAKE_DIRECTORY ${folder}/labs/${lab})
  shardbook_exercise_flags(flags)
  add_custom_command(OUTPUT ${made} DEPENDS ${read} DEPFILE ${folder}/${lab}.d VERBATIM
    COMMENT "Precompiling labs/${lab}/lab.hpp"
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -MD -MF ${folder}/${lab}.d -MQ ${made} -x c++-header ${read} -o ${made}.part
    COMMAND ${CMAKE_COMMAND} -E rename ${made}.part ${made})
  add_custom_target(lab_header_${lab} DEPENDS ${made})
  if(NOT SHARDBOOK_TESTS)
    return()
  endif()
  add_test(NAME labs.${lab}.the_header_is_precompiled COMMAND ${CMAKE_COMMAND} -DLAB=${lab} -DFOLDER=${folder} -DCOMPILER=${CMAKE_CXX_COMPILER}
           "-DFLAGS=${flags}" -P ${PROJECT_SOURCE_DIR}/cmake/CheckPrecompiled.cmake)
  set_tests_properties(labs.${lab}.the_header_is_precompiled PROPERTIES LABELS fast TIMEOUT 60)
endfunction()

function(shardbook_exercise ID)
  cmake_parse_arguments(ARG "" "FILE" "HARNESS;USES;BY_SEED" ${ARGN})
  get_filename_component(lab ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(target exercise_${ID})
  add_library(${target} STATIC ${ARG_HARNESS})
  target_compile_options(${target} PRIVATE ${SHARDBOOK_WARNINGS} -O1)
  list(TRANSFORM ARG_USES PREPEND shardbook_)
  target_link_libraries(${target} PUBLIC lab_harness ${ARG_USES})
  set_property(GLOBAL APPEND PROPERTY SHARDBOOK_EXERCISES ${ID})

  shardbook_exercise_flags(flags)
  if(TARGET lab_header_${lab})
    add_dependencies(${target} lab_header_${lab})
    list(PREPEND flags -I${CMAKE_BINARY_DIR}/labs/precompiled)
  endif()
  set(link "")
  if(SHARDBOOK_GOLD_LINKS)
    list(APPEND link -fuse-ld=gold)
  endif()
  if(SHARDBOOK_SANITIZE)
    list(APPEND link -fsanitize=${SHARDBOOK_SANITIZE})
  endif()
  shardbook_link_items(items ${target})
  list(APPEND link -Wl,--start-group ${items} -Wl,--end-group -pthread)
  shardbook_json_list(flags_json ${flags})
  shardbook_json_list(link_json ${link})
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/labs/${ID}.json CONTENT
"{\"compiler\": \"${CMAKE_CXX_COMPILER}\",
 \"compile\": ${flags_json},
 \"link\": ${link_json},
 \"starter\": \"labs/${lab}/${ARG_FILE}\",
 \"solution\": \"solutions/${lab}/${ARG_FILE}\",
 \"learner\": \"experiments/${lab}/${ARG_FILE}\"}
")

  if(NOT SHARDBOOK_TESTS)
    return()
  endif()
  set(tried solutions/${lab}/${ARG_FILE})
  if(NOT SHARDBOOK_SANITIZE)   # where all is slow, what is right is enough
    file(GLOB wrong CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/data/labs/${ID}/*.cpp)
    list(APPEND tried labs/${lab}/${ARG_FILE} ${wrong})
  endif()
  set(place 0)
  foreach(other IN LISTS ARG_BY_SEED)
    math(EXPR place "${place} + 1")
    foreach(folder solutions labs)
      if(folder STREQUAL "labs")
        set(case starter)
      else()
        set(case solution)
      endif()
      add_test(NAME labs.${ID}.${case}_of_seed_${place} COMMAND ${CMAKE_COMMAND} -DID=${ID} -DCASE=${case} -DSEED=${place} -DFILE=${PROJECT_SOURCE_DIR}/${folder}/${lab}/${other}
               -DBUILD=${CMAKE_BINARY_DIR} -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/CheckExercise.cmake)
      set_tests_properties(labs.${ID}.${case}_of_seed_${place} PROPERTIES LABELS fast TIMEOUT 300)
    endforeach()
  endforeach()
  foreach(file IN LISTS tried)
    if(file MATCHES "^labs/")
      set(case starter)
    elseif(file MATCHES "^solutions/")
      set(case solution)
    else()
      get_filename_component(case ${file} NAME_WE)
    endif()
    get_filename_component(file ${file} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    add_test(NAME labs.${ID}.${case} COMMAND ${CMAKE_COMMAND} -DID=${ID} -DCASE=${case} -DFILE=${file} -DBUILD=${CMAKE_BINARY_DIR}
             -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/CheckExercise.cmake)
    set_tests_properties(labs.${ID}.${case} PROPERTIES LABELS fast TIMEOUT 300)
  endforeach()
endfunction()
