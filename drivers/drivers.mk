# Back ends that are loaded at run time. Each is built where its toolkit is; the library says which is absent.
DRIVER_DIR := $(BUILD)/lib/millrace

# A back end: $(eval $(call driver,name,sources,more to link))
define driver
ALL += $(DRIVER_DIR)/mr_driver_$(1).so
$(DRIVER_DIR)/mr_driver_$(1).so: $(call objs,$(2))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$$(CC) $$(OPT) -shared -o $$@ $$^ $(3)
endef

HAVE_OPENCL := $(shell $(PKG_CONFIG) --exists OpenCL 2>/dev/null && echo yes)
ifeq ($(HAVE_OPENCL),yes)
$(eval $(call driver,opencl,$(wildcard drivers/opencl/*.c),-lOpenCL -pthread))
endif

# A simulated unit runs in a process of its own; sim/ makes the unit's library.
$(eval $(call driver,sim,drivers/sim/sim.c drivers/sim/pnm.c,-pthread))
SIM_HOST := $(DRIVER_DIR)/mr_sim_host
ALL += $(SIM_HOST)
$(SIM_HOST): $(call objs,drivers/sim/host.c)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -o $@ $^ -ldl -pthread

# CUDA: the driver library is opened at run time, but compiling for a GPU takes nvcc.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_INCLUDE := $(if $(NVCC),$(firstword $(dir $(wildcard $(dir $(realpath $(NVCC)))../include/cuda.h \
	$(dir $(realpath $(NVCC)))../targets/*/include/cuda.h))))
ifneq ($(CUDA_INCLUDE),)
HAVE_CUDA := yes
CUDA_SRC := $(wildcard drivers/cuda/*.c)
$(eval $(call driver,cuda,$(CUDA_SRC),-ldl -pthread))
$(call objs,$(CUDA_SRC)): CFLAGS += -isystem $(CUDA_INCLUDE)

# One fat binary a source: Turing and later, newest as PTX for what comes after. --fmad=false as -ffp-contract=off.
CUDA_ARCHS ?= 75 80 90
NVCCFLAGS = -x cu -std=c++17 -I. --fmad=false -O3 \
	$(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
FATBINS := $(patsubst %.cl,$(DRIVER_DIR)/%.fatbin,$(notdir $(KERNEL_SRC)))
ALL += $(FATBINS)
$(FATBINS): $(DRIVER_DIR)/%.fatbin: kernels/%.cl $(wildcard kernels/*.h) models/golden/rgu_trig.h models/golden/rgu_spin.h \
	host/include/millrace/pnm_desc.h
	@mkdir -p $(@D)
	@echo "  NVCC  $<"
	@$(NVCC) $(NVCCFLAGS) -fatbin -o $@ $<
endif
