# The conformance suite, and what it needs to make faults happen.
CONFORMANCE_SRC := $(wildcard tests/conformance/*_test.cpp)
CONFORMANCE_MAIN := tests/conformance/main.cpp
FAULTS_SRC := $(wildcard tests/conformance/faults/*_test.cpp)

# Linked with the shared library, as a program of a user would be.
# $(call conformance_test,name,sources,more to build first)
define conformance_test
TESTS += $(BUILD)/tests/conformance/$(1)
$(call objs,$(2)): CXXFLAGS += $(CPPUTEST_CFLAGS)
$(BUILD)/tests/conformance/$(1): $(call objs,$(2) $(CONFORMANCE_MAIN)) $(LIBMILLRACE) $(GOLDEN_LIB) $(3)
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$(CXX) $(OPT) -o $$@ $(call objs,$(2) $(CONFORMANCE_MAIN)) -L$(dir $(LIBMILLRACE)) -lmillrace \
		-Wl,-rpath,'$$$$ORIGIN/../../lib' $(GOLDEN_LIB) $(CPPUTEST_LIBS) -lm
endef

$(call objs,$(CONFORMANCE_MAIN)): CXXFLAGS += $(CPPUTEST_CFLAGS)
CONFORMANCE := $(BUILD)/tests/conformance/all
$(eval $(call conformance_test,all,$(CONFORMANCE_SRC)))

# A folder of back ends whose simulated unit has faults; the test finds it beside itself.
FAKE_SIM := $(BUILD)/tests/conformance/fake_sim
$(FAKE_SIM)/libmr_sim_rgu.so: $(call objs,tests/conformance/fake_sim.c) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@$(CC) $(OPT) -shared -o $@ $^ -lm
	@ln -sfn ../../../lib/millrace/mr_driver_sim.so ../../../lib/millrace/mr_sim_host $(@D)/
$(eval $(call conformance_test,sim_faults,tests/conformance/faults/sim_faults_test.cpp,\
	$(FAKE_SIM)/libmr_sim_rgu.so $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)))

# An OpenCL that is broken, by a library laid over it.
ifeq ($(HAVE_OPENCL),yes)
CL_SHIM := $(BUILD)/tests/conformance/cl_shim.so
PROBE := $(BUILD)/tests/conformance/probe
$(CL_SHIM): $(call objs,tests/conformance/cl_shim.c)
	@mkdir -p $(@D)
	@$(CC) $(OPT) -shared -o $@ $^ -ldl
$(PROBE): $(call objs,tests/conformance/probe.c) $(LIBMILLRACE)
	@mkdir -p $(@D)
	@$(CC) $(OPT) -o $@ $(call objs,tests/conformance/probe.c) -L$(dir $(LIBMILLRACE)) -lmillrace \
		-Wl,-rpath,'$$ORIGIN/../../lib'
$(eval $(call script_test,conformance/opencl_faults,tests/conformance/opencl_faults.sh,\
	$(CL_SHIM) $(PROBE) $(CONFORMANCE) $(DRIVER_DIR)/mr_driver_opencl.so))
endif

# A driver library without a GPU: the kernels run as they were compiled as C.
ifeq ($(HAVE_CUDA),yes)
FAKE_CUDA := $(BUILD)/tests/conformance/fake_cuda
$(call objs,tests/conformance/fake_cuda.c): CFLAGS += -isystem $(CUDA_INCLUDE)
$(FAKE_CUDA)/libcuda.so.1: $(call objs,tests/conformance/fake_cuda.c) $(KERNEL_OBJS) $(KERNEL_TABLE_OBJ)
	@mkdir -p $(@D)
	@$(CC) $(OPT) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o $@ $^ -lm -pthread
	@ln -sfn $(addprefix ../../../lib/millrace/,mr_driver_cuda.so $(notdir $(FATBINS))) $(@D)/
$(eval $(call conformance_test,cuda_faults,$(CONFORMANCE_SRC) tests/conformance/faults/cuda_faults_test.cpp,\
	$(FAKE_CUDA)/libcuda.so.1 $(DRIVER_DIR)/mr_driver_cuda.so $(FATBINS)))
endif

$(eval $(call script_test,conformance/gpu_baseline,tests/conformance/gpu_baseline.sh))

# Random programs of the near-memory unit, other ones each time, wherever kernels do its work.
.PHONY: soak-pnm-kernels
soak-pnm-kernels: $(CONFORMANCE)
	@seed=$${MR_SEED:-$$(date +%s)}; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do \
		MR_SEED=$$((seed + i)) $< --only cpu: -sg Pnm || exit 1; \
		MR_SEED=$$((seed + i)) $< --only opencl:0 -sg Pnm || exit 1; done
SOAKS += soak-pnm-kernels
