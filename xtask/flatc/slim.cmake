# Given to the cmake build of flatc as its toolchain file, the one door `flatc-fork` leaves open:
# flatc alone, without FlatBuffers' own tests and samples, which take longer to compile than it.
set(FLATBUFFERS_BUILD_TESTS OFF CACHE BOOL "" FORCE)
