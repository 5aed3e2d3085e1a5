# Simulator libraries: the Verilated board wrapper of a unit behind sim/sim.h.
#   libmr_sim_rgu.so        for speed: registers start from zero, no tracing
#   libmr_sim_rgu_debug.so  for regression and waveforms: FST tracing, random initial values
# Assertions are alive in both.
SIM_LIBDIR := $(BUILD)/lib/millrace
SIM_RGU := $(SIM_LIBDIR)/libmr_sim_rgu.so
SIM_RGU_DEBUG := $(SIM_LIBDIR)/libmr_sim_rgu_debug.so
ALL += $(SIM_RGU) $(SIM_RGU_DEBUG)

SIM_RGU_SV := rtl/rgu/rgu_pkg.sv rtl/rgu/rgu_spin_pkg.sv rtl/kernels/rgu_kernel.sv
SIM_RGU_DEPS := $(wildcard rtl/common/*.sv rtl/rgu/*.sv rtl/kernels/rgu_*.sv)
SIM_CXX := sim/unit_rgu.cpp sim/verilated_text.cpp sim/axi_memory.cpp sim/options.cpp
SIM_HDR := sim/sim.h sim/axi_memory.hpp sim/axi_pins.hpp sim/options.hpp sim/verilated_hooks.h sim/verilated_text.hpp
SIM_CXXFLAGS = -std=gnu++17 -O3 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -I. -I$(BUILD) \
	-isystem $(VERILATOR_INC) -isystem $(VERILATOR_INC)/vltstd -DVM_COVERAGE=0 -DVM_SC=0 \
	-DVM_TRACE_VCD=0

# $(call sim_library,name,verilator flags,defines,compiler flags of the model)
define sim_library
$(BUILD)/verilated/$(1)/Vmr_rgu.mk: $(SIM_RGU_DEPS)
	@mkdir -p $$(@D)
	@echo "  VERIL $(1)"
	@$$(VERILATOR) --cc -Wall --assert -O3 --prefix Vmr_rgu --top-module rgu_kernel --Mdir $$(@D) \
		-Irtl/common -Irtl/rgu $(2) $(SIM_RGU_SV)

$(SIM_LIBDIR)/lib$(1).so: $(BUILD)/verilated/$(1)/Vmr_rgu.mk $(SIM_CXX) $(SIM_HDR)
	@mkdir -p $$(@D)
	@echo "  CXX   $(1)"
	@+$$(MAKE) --no-print-directory -s -C $(BUILD)/verilated/$(1) -f Vmr_rgu.mk Vmr_rgu__ALL.a CXX="$$(CXX)" \
		OPT_FAST="$(4) -fPIC -fvisibility=hidden" OPT_SLOW="-O1 -fPIC -fvisibility=hidden" \
		OPT_GLOBAL="-O2 -fPIC -fvisibility=hidden" > /dev/null
	@$$(CXX) $$(SIM_CXXFLAGS) $(3) -w -include sim/verilated_hooks.h -I$(BUILD)/verilated/$(1) -shared \
		-Wl,-z,defs -o $$@ $(SIM_CXX) $(BUILD)/verilated/$(1)/Vmr_rgu__ALL.a \
		$$(VERILATOR_INC)/verilated.cpp $$(VERILATOR_INC)/verilated_threads.cpp \
		$(if $(findstring trace,$(2)),$$(VERILATOR_INC)/verilated_fst_c.cpp -lz) -pthread
endef

$(eval $(call sim_library,mr_sim_rgu,--x-assign fast --x-initial fast --output-split 20000,\
	-DVM_TRACE=0 -DVM_TRACE_FST=0,-O3))
$(eval $(call sim_library,mr_sim_rgu_debug,--x-assign unique --x-initial unique --trace-fst \
	--trace-structs --output-split 20000,-DVM_TRACE=1 -DVM_TRACE_FST=1 -DMR_SIM_XINIT=1,-O1))
