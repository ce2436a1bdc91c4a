# find_package(heddle) gives the target heddle::heddle. libheddle.so brings what it needs with it.
include("${CMAKE_CURRENT_LIST_DIR}/heddleTargets.cmake")
