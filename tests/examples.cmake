# Every example runs, in a form that takes seconds. Their kernels stay inside the build folder, so
# that a test never reads what another version of krait left elsewhere.
function(krait_example_test name)
  cmake_parse_arguments(arg "" "PASS" "COMMAND" ${ARGN})
  add_test(NAME "example ${name}" COMMAND ${arg_COMMAND})
  set_tests_properties("example ${name}" PROPERTIES
    ENVIRONMENT "KRAIT_CACHE_DIR=${CMAKE_BINARY_DIR}/example_cache")
  if(arg_PASS)
    set_tests_properties("example ${name}" PROPERTIES PASS_REGULAR_EXPRESSION "${arg_PASS}")
  endif()
endfunction()

krait_example_test(layer COMMAND layer
  PASS "y.0, 0, 0. = -0.9293[0-9]*, then y.0, 100, 0. = -1.0655[0-9]*\nd sum.y. / d A_log.0. = 0.4603")
# Ends with 0 only where the loss fell to a quarter.
krait_example_test(custom_block COMMAND custom_block)
# Ends with 0 only where the held-out loss fell.
set(short --steps 40 --batch 4 --seqlen 64 --d-model 32 --layers 1)
krait_example_test(train_text COMMAND train_text ${CMAKE_SOURCE_DIR}/LICENSE ${short})
krait_example_test(train_text_writes COMMAND train_text ${CMAKE_SOURCE_DIR}/LICENSE ${short}
  --kernels ${CMAKE_BINARY_DIR}/example_kernels
  PASS "it writes:\n.+---\n\nkernels: [0-9]+ compiled, [0-9]+ from the cache.+(no CUDA source|are in )")
krait_example_test(train_text_refuses COMMAND train_text --d-model 33
  PASS "train_text: .*headdim is 64; allowed")
krait_example_test(train_text_short_text COMMAND train_text ${CMAKE_CURRENT_LIST_FILE}
  PASS "train_text: the text has [0-9]+ bytes; allowed: at least 2570")
krait_example_test(train_text_no_file COMMAND train_text nowhere.txt
  PASS "train_text: cannot read nowhere.txt")
# No GPU is needed; without NVRTC the sources alone are printed.
krait_example_test(print_kernels COMMAND print_kernels 9.0
  PASS "leaky_sum.step.y.cu\n// .+__global__")
if(TARGET cuda_emulator)
  krait_example_test(cuda_layer COMMAND ${CMAKE_COMMAND} -E env
    KRAIT_LIBCUDA=${CMAKE_BINARY_DIR}/libcuda_emulator.so $<TARGET_FILE:cuda_layer>
    PASS "\nas close as they should be")
endif()
krait_example_test(cuda_layer_without_gpu COMMAND ${CMAKE_COMMAND} -E env
  KRAIT_LIBCUDA=/nowhere/libcuda.so.1 $<TARGET_FILE:cuda_layer>
  PASS "cuda_layer: .+KRAIT_LIBCUDA")
