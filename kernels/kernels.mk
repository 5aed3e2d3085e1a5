# Compute kernels: one source, compiled as C here, embedded as text for OpenCL, as a fat binary for CUDA.
KERNEL_SRC := $(sort $(wildcard kernels/*.cl kernels/*/*.cl))
KERNEL_OBJS := $(KERNEL_SRC:%=$(BUILD)/obj/%.o)
KERNEL_TABLE := $(BUILD)/gen/kernel_table.c
KERNEL_TABLE_OBJ := $(BUILD)/obj/gen/kernel_table.o

# -O3: these loops are what the cpu back end is for.
$(KERNEL_OBJS): $(BUILD)/obj/%.o: %
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CFLAGS_ALL) -O3 -MMD -MP -x c -c $< -o $@

$(KERNEL_TABLE): $(KERNEL_SRC) $(wildcard kernels/*.h models/golden/rgu_trig.h models/golden/rgu_spin.h) \
	host/include/millrace/pnm_desc.h tools/gen-kernels
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	@$(PYTHON) tools/gen-kernels $@ $(KERNEL_SRC)

$(KERNEL_TABLE_OBJ): $(KERNEL_TABLE)
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
