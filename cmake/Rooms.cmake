# The law of the house, enforced at configure time.
#
#   shardbook_room(mesh FLOOR 1 USES base SOURCES mesh.cpp)
#
# makes the library target `mesh` (alias shardbook::mesh) of engine/mesh/. A room may use only rooms
# of lower floors: an upward or sideways edge stops the configure with both floors named.
# Viewer rooms use the same function with names prefixed viewer_.

# Only a cast to a type wider than a byte makes a misaligned pointer. In a TARGET whose FOLDER has none, that check of the
# sanitizer's finds nothing and takes a quarter of the time to compile.
function(shardbook_check_alignment TARGET FOLDER)
  if(NOT SHARDBOOK_SANITIZE MATCHES "undefined")
    return()
  endif()
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${FOLDER}/*.cpp ${FOLDER}/*.hpp)
  foreach(file IN LISTS files)
    file(STRINGS ${file} casts REGEX "reinterpret_cast<|static_cast<[^>]*\\*>|[^a-z_]as<")
    string(REGEX REPLACE "_cast<(const )?(unsigned char|char|std::byte|Bytef)\\*>" "" casts "${casts}")
    if(casts MATCHES "reinterpret_cast<|static_cast<[^>]*\\*>|[^a-z_]as<")
      return()
    endif()
  endforeach()
  target_compile_options(${TARGET} PRIVATE -fno-sanitize=alignment)
endfunction()

# In builds for a sanitizer most of what files include is read once for all rooms, which takes two seconds of each batch. Where tests
# run as shipped each batch reads what it includes. A compiler wants what is precompiled as optimised as what includes it: a ROOM that
# is compiled at another LEVEL than most, or a file of its sources with options of its own, reads all itself.
function(shardbook_precompile ROOM LEVEL)
  if(NOT CMAKE_UNITY_BUILD OR (LEVEL AND NOT CMAKE_CXX_FLAGS_RELWITHDEBINFO MATCHES "${LEVEL}"))
    return()
  endif()
  if(ROOM STREQUAL "base")
    target_precompile_headers(shardbook_base PRIVATE <algorithm> <array> <chrono> <cmath> <filesystem> <fstream> <functional> <map> <memory>
                              <mutex> <optional> <set> <sstream> <string> <thread> <unordered_map> <vector> <nlohmann/json.hpp>)
  else()
    target_precompile_headers(shardbook_${ROOM} REUSE_FROM shardbook_base)
  endif()
  foreach(source IN LISTS ARGN)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(options)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# Where files are compiled in batches and nothing is instrumented, rooms that are equally optimised are compiled as one: what they
# include is read once, and what they make of templates is made once, which takes a fifth off. FIRST's archive has the code of all, the
# others' none.
# REQUIRES: of the rooms that use one of them, none is used by another of them, unless it is one of them.
function(shardbook_compile_as_one FIRST)
  if(NOT CMAKE_UNITY_BUILD OR SHARDBOOK_SANITIZE)
    return()
  endif()
  foreach(room IN LISTS ARGN)
    foreach(property SOURCE_DIR SOURCES COMPILE_DEFINITIONS LINK_LIBRARIES SHARDBOOK_LEVEL)
      get_target_property(${property} shardbook_${room} ${property})
    endforeach()
    get_target_property(level shardbook_${FIRST} SHARDBOOK_LEVEL)
    if(NOT level STREQUAL SHARDBOOK_LEVEL)
      message(FATAL_ERROR "rooms ${FIRST} (${level}) and ${room} (${SHARDBOOK_LEVEL}) are optimised otherwise: they cannot be compiled as one")
    endif()
    list(TRANSFORM SOURCES PREPEND ${SOURCE_DIR}/ REGEX "^[^/]")
    target_sources(shardbook_${FIRST} PRIVATE ${SOURCES})
    if(COMPILE_DEFINITIONS)
      target_compile_definitions(shardbook_${FIRST} PRIVATE ${COMPILE_DEFINITIONS})
    endif()
    list(REMOVE_ITEM LINK_LIBRARIES shardbook_${FIRST})
    target_link_libraries(shardbook_${FIRST} PUBLIC ${LINK_LIBRARIES})
    set(nothing ${CMAKE_CURRENT_BINARY_DIR}/${room}_is_in_${FIRST}.cpp)
    file(CONFIGURE OUTPUT ${nothing} CONTENT "// The code of ${room} is compiled with that of ${FIRST}.\n")
    set_target_properties(shardbook_${room} PROPERTIES SOURCES ${nothing})
    target_link_libraries(shardbook_${room} PUBLIC shardbook_${FIRST})
  endforeach()
endfunction()

function(shardbook_room ROOM)
  cmake_parse_arguments(ARG "" "FLOOR" "USES;SOURCES;LIBRARIES" ${ARGN})
  set_property(GLOBAL PROPERTY SHARDBOOK_FLOOR_${ROOM} ${ARG_FLOOR})
  set_property(GLOBAL APPEND PROPERTY SHARDBOOK_ROOMS ${ROOM})

  set(below "")
  foreach(used IN LISTS ARG_USES)
    get_property(floor_below GLOBAL PROPERTY SHARDBOOK_FLOOR_${used})
    if("${floor_below}" STREQUAL "")
      message(FATAL_ERROR "room ${ROOM} (floor ${ARG_FLOOR}) uses '${used}', which is not built before it: "
                          "rooms are listed floor by floor in engine/CMakeLists.txt, and use only lower floors")
    endif()
    if(NOT floor_below LESS ARG_FLOOR)
      message(FATAL_ERROR "room ${ROOM} (floor ${ARG_FLOOR}) may not use ${used} (floor ${floor_below}): "
                          "includes go down only, and two rooms of one floor never include each other")
    endif()
    list(APPEND below shardbook_${used})
  endforeach()

  # CMake makes batches (CMAKE_UNITY_BUILD) of C++ alone, and nvcc takes four seconds to begin with a file, whatever is in it.
  set(kernels ${ARG_SOURCES})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  if(CMAKE_UNITY_BUILD AND kernels)
    list(TRANSFORM kernels REPLACE "(.+)" "#include \"\\1\"\n")
    string(CONCAT kernels ${kernels})
    file(CONFIGURE OUTPUT kernels.cu CONTENT "${kernels}" @ONLY)
    list(FILTER ARG_SOURCES EXCLUDE REGEX "\\.cu$")
    list(APPEND ARG_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/kernels.cu)
  endif()

  add_library(shardbook_${ROOM} STATIC ${ARG_SOURCES})
  add_library(shardbook::${ROOM} ALIAS shardbook_${ROOM})
  target_include_directories(shardbook_${ROOM} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(shardbook_${ROOM} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${SHARDBOOK_WARNINGS}>)
  # With the address sanitizer code is compiled at -O0, for -O1 takes twice as long; what loops over numbers or places
  # boxes is not. With the thread sanitizer -O1 takes half as long again to compile, and tests run in half the time
  # (CMakePresets.json), but for what they hardly do.
  set(level "")
  if(ROOM MATCHES "^(device|diagram|shard|tensor)$")
    set(level -O1)
  elseif(ROOM MATCHES "^(config|data|launch|plan|simulate|world)$")
    set(level -O0)
  elseif(ROOM STREQUAL "kernels")
    set(level -O2)   # -O3 computes no faster there, and takes a third longer to compile
  endif()
  if(SHARDBOOK_SANITIZE)
    target_compile_options(shardbook_${ROOM} PRIVATE ${level})
    shardbook_precompile(${ROOM} "${level}" ${ARG_SOURCES})
  endif()
  shardbook_check_alignment(shardbook_${ROOM} ${CMAKE_CURRENT_SOURCE_DIR})
  # Rooms that read, ask and tell, once a command: they compile in two thirds of the time, the larger ones at -Og in half, and nobody
  # waits for them. Of the others those that loop over numbers have all that the compiler can do; what only decides what is to be done
  # is as fast without.
  set(optimise "")
  if(ROOM MATCHES "^(cause|cli|config|launch|reading|report|workbook|viewer_app|viewer_page)$")
    set(optimise -Og)
  elseif(ROOM MATCHES "^(book|checkpoint|diagram|mesh|metrics|plan|simulate|timeline|world|viewer_scene|viewer_ui|viewer_views)$")
    set(optimise -O1)
  elseif(ROOM STREQUAL "kernels")
    set(optimise -O3)   # in every build but Debug
  elseif(NOT ROOM MATCHES "^(base|comm|device|tensor)$")
    set(optimise -O2)
  endif()
  if(NOT SHARDBOOK_SANITIZE)
    target_compile_options(shardbook_${ROOM} PRIVATE "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:${optimise}>")
    set(level "${optimise}")
  endif()
  if(NOT level AND SHARDBOOK_SANITIZE)
    set(level ${CMAKE_CXX_FLAGS_RELWITHDEBINFO})
  elseif(NOT level)
    set(level -O3)   # as the build's type asks for
  endif()
  set_target_properties(shardbook_${ROOM} PROPERTIES SHARDBOOK_LEVEL "${level}")   # read by Tests.cmake
  target_link_libraries(shardbook_${ROOM} PUBLIC ${below} ${ARG_LIBRARIES})
endfunction()
