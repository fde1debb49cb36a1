# Fixtures on a real GPU, with the driver that the system has, and the bits of math=exact against
# those of the emulated driver: cmake -DKRAIT=... -DEMULATOR=... -DFIXTURES=... -DWORK=... -P ...
execute_process(COMMAND ${KRAIT} info OUTPUT_VARIABLE info COMMAND_ERROR_IS_FATAL ANY)
if(NOT info MATCHES "cuda:0: [^\n]*compute capability")
  message("no GPU here: skipped")
  return()
endif()
file(GLOB fixtures ${FIXTURES}/m2_*.safetensors ${FIXTURES}/m3_*.safetensors)
set(check ${KRAIT} check ${fixtures} --device cuda:0 --dtype f32)
foreach(schedule "" "segments=3" "plan=step")
  execute_process(COMMAND ${check} --schedule "${schedule}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB few ${FIXTURES}/m2_ssd_o*.safetensors ${FIXTURES}/m3_scan_o*.safetensors)
set(exact ${KRAIT} check ${few} --device cuda:0 --dtype f32 --schedule
  "chunk=16 backward.chunk=16 segments=1 math=exact gemm=generated")
execute_process(COMMAND ${CMAKE_COMMAND} -E env KRAIT_LIBCUDA=${EMULATOR} ${exact}
  --record-bits ${WORK}/device_bits.json COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${exact} --bits ${WORK}/device_bits.json COMMAND_ERROR_IS_FATAL ANY)
