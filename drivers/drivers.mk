# Back ends that are loaded at run time. Each is built where its toolkit is; the library says which is absent.
DRIVER_DIR := $(BUILD)/lib/millrace

# A back end: $(eval $(call driver,name,sources,more to link))
define driver
ALL += $(DRIVER_DIR)/mr_driver_$(1).so
LINT_C += $(2)
$(DRIVER_DIR)/mr_driver_$(1).so: $(call objs,$(2))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$$(CC) -shared -o $$@ $$^ $(3)
endef

HAVE_OPENCL := $(shell $(PKG_CONFIG) --exists OpenCL 2>/dev/null && echo yes)
ifeq ($(HAVE_OPENCL),yes)
$(eval $(call driver,opencl,$(wildcard drivers/opencl/*.c),-lOpenCL -pthread))
endif

# A simulated unit runs in a process of its own; sim/ makes the unit's library.
$(eval $(call driver,sim,drivers/sim/sim.c,-pthread))
SIM_HOST := $(DRIVER_DIR)/mr_sim_host
ALL += $(SIM_HOST)
LINT_C += drivers/sim/host.c
$(SIM_HOST): $(call objs,drivers/sim/host.c)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) -o $@ $^ -ldl
