# A test program becomes tests of ctest: one process for each suite of GoogleTest.
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
  add_custom_command(TARGET ${TARGET} POST_BUILD BYPRODUCTS ${suites} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${TARGET}> -DPREFIX=${ARG_PREFIX} -DLABEL=${ARG_LABEL} -DAPART=${ARG_APART}
            -DLONG=${ARG_LONG} -DREPORTS=${CMAKE_BINARY_DIR}/tested -DSUITES=${suites} -P ${script})
  set_property(TARGET ${TARGET} APPEND PROPERTY LINK_DEPENDS ${script} ${ARG_APART})
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${suites}\")\n  include(\"${suites}\")\nelse()\n  add_test(${TARGET}_NOT_BUILT ${TARGET}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
