# Installs krait into an empty folder, builds the outside program against it and runs that.
# Takes BUILD (krait's build folder), WORK (a folder to use), GENERATOR, COMPILER, FLAGS.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${status}:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(expect pattern)
  if(NOT out MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern} in:\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# What is installed must not lean on the sources: nothing of it may name them.
file(GLOB_RECURSE files ${WORK}/prefix/*.cmake ${WORK}/prefix/*.h)
foreach(file ${files})
  file(STRINGS ${file} hits REGEX "${SOURCE}")
  if(hits)
    message(FATAL_ERROR "${file} names the source folder: ${hits}")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS}
  -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build ${WORK}/build)
set(ENV{KRAIT_CACHE_DIR} ${WORK}/cache)
run(${WORK}/build/outside)
expect("y 1.75, dx 1.75")
run(${WORK}/build/outside print --block halving --stage graph)
expect("Scan t of x")
run(${WORK}/prefix/bin/krait info)
expect("host")
