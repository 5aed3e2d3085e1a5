# Measuring GPUs. The library comes later in the order of fragments, so its place is written out.
KERNEL_BENCH := $(BUILD)/kernel_bench
ALL += $(KERNEL_BENCH)
$(KERNEL_BENCH): $(BUILD)/obj/models/gpu/kernel_bench.o $(BUILD)/lib/libmillrace.so $(BUILD)/lib/libmr_golden.a
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -o $@ $< -L$(BUILD)/lib -lmillrace -Wl,-rpath,'$$ORIGIN/lib' $(BUILD)/lib/libmr_golden.a -lm
