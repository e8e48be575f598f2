# Given to the cmake build of HiGHS as its toolchain file, the one door that `highs-sys` leaves open: several source files are
# compiled as one, with little optimisation, which takes a third of the time. Its tests here are small.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "" FORCE)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12 CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
