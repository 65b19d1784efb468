# A test program becomes tests of ctest: one process for each suite of GoogleTest, or, under sanitizers, for a few of them.
#
#   shardbook_tests(test_mesh PREFIX mesh. LABEL fast APART "${apart}")
#
# makes mesh.DenseMesh and so on when test_mesh is linked. (A process for each of 3000 tests takes longer to start than most
# of them run.) APART, which may be empty, is a file that names tests that do not share their suite's process (SuitesOfTests.cmake).
# LONG says that they take long under the address sanitizer. How many tests ran, and which were skipped, say the reports that
# processes leave in tested/.
function(shardbook_tests TARGET)
  cmake_parse_arguments(ARG "LONG" "PREFIX;LABEL;APART" "" ${ARGN})
  set(script ${PROJECT_SOURCE_DIR}/cmake/SuitesOfTests.cmake)
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_suites.cmake)
  # What a sanitizer watches takes as long to begin as many a suite takes to run.
  set(gather 0)
  if(SHARDBOOK_SANITIZE)
    set(gather 24)
  endif()
  set(threads OFF)
  if(SHARDBOOK_SANITIZE MATCHES "thread")
    set(threads ON)
  endif()
  add_custom_command(TARGET ${TARGET} POST_BUILD BYPRODUCTS ${suites} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${TARGET}> -DPREFIX=${ARG_PREFIX} -DLABEL=${ARG_LABEL} -DAPART=${ARG_APART}
            -DLONG=${ARG_LONG} -DTHREADS=${threads} -DGATHER=${gather} -DREPORTS=${CMAKE_BINARY_DIR}/tested -DSUITES=${suites} -P ${script})
  set_property(TARGET ${TARGET} APPEND PROPERTY LINK_DEPENDS ${script} ${ARG_APART})
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${suites}\")\n  include(\"${suites}\")\nelse()\n  add_test(${TARGET}_NOT_BUILT ${TARGET}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

# The rooms that TARGET links, or that those use, into OUT.
function(shardbook_rooms_of TARGET OUT)
  set(found ${${OUT}})
  get_target_property(libraries ${TARGET} LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(TARGET ${library} AND library MATCHES "^(shardbook|lab|exercise)_" AND NOT library IN_LIST found)
      list(APPEND found ${library})
      shardbook_rooms_of(${library} found)
    endif()
  endforeach()
  set(${OUT} ${found} PARENT_SCOPE)
endfunction()

# Many files have the same functions of the library's templates, each as optimised as the file is, and a linker takes the first: a test
# program's own, which is not optimised. So rooms come before its files, whole, the most optimised ones first, and run in tests as they
# do elsewhere (by which timeline's, page's and metrics' take a quarter to a third less). REQUIRES: TARGET's libraries are named.
function(shardbook_link_rooms_first TARGET)
  set(rooms "")
  shardbook_rooms_of(${TARGET} rooms)
  set(archives "")
  foreach(level -O3 -O2 -O1 -Og)
    foreach(room IN LISTS rooms)
      get_target_property(of_room ${room} SHARDBOOK_LEVEL)
      if("${of_room}" STREQUAL level)
        string(APPEND archives " $<TARGET_FILE:${room}>")
      endif()
    endforeach()
  endforeach()
  if(archives)
    target_link_options(${TARGET} PRIVATE "SHELL:-Wl,--whole-archive${archives} -Wl,--no-whole-archive")
  endif()
endfunction()
