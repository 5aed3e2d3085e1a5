# Simulator libraries: the Verilated board wrapper of a unit behind sim/sim.h.
#   libmr_sim_<unit>.so        for speed: registers start from zero, no tracing
#   libmr_sim_<unit>_debug.so  for regression and waveforms: FST tracing, random initial values
# Assertions are alive in both.
SIM_LIBDIR := $(BUILD)/lib/millrace
SIM_RGU := $(SIM_LIBDIR)/libmr_sim_rgu.so
SIM_RGU_DEBUG := $(SIM_LIBDIR)/libmr_sim_rgu_debug.so
SIM_PNM := $(SIM_LIBDIR)/libmr_sim_pnm.so
SIM_PNM_DEBUG := $(SIM_LIBDIR)/libmr_sim_pnm_debug.so
ALL += $(SIM_RGU) $(SIM_RGU_DEBUG) $(SIM_PNM) $(SIM_PNM_DEBUG)

# A unit: the sources Verilator is given, all it depends on, and what sim/unit.cpp has to know of it.
SIM_SV_rgu := rtl/rgu/rgu_pkg.sv rtl/rgu/rgu_spin_pkg.sv rtl/kernels/rgu_kernel.sv
SIM_DEPS_rgu := $(wildcard rtl/common/*.sv rtl/rgu/*.sv rtl/kernels/rgu_*.sv)
SIM_DEFS_rgu := -DMR_SIM_NAME='"rgu"' -DMR_SIM_STREAM=1 -DMR_SIM_DRAM=0
SIM_SV_pnm := sim/pnm.vlt rtl/pnm/pnm_desc_pkg.sv rtl/pnm/pnm_stream_pkg.sv rtl/pnm/pnm_dram_pkg.sv \
	rtl/kernels/pnm_kernel.sv
SIM_DEPS_pnm := sim/pnm.vlt $(wildcard rtl/common/*.sv rtl/pnm/*.sv rtl/kernels/pnm_*.sv)
SIM_DEFS_pnm := -DMR_SIM_NAME='"pnm"' -DMR_SIM_STREAM=0 -DMR_SIM_DRAM=1

SIM_CXX := sim/unit.cpp sim/verilated_text.cpp sim/axi_memory.cpp sim/options.cpp
SIM_HDR := sim/sim.h sim/axi_memory.hpp sim/axi_pins.hpp sim/options.hpp sim/verilated_hooks.h \
	sim/verilated_text.hpp sim/dram_trace.hpp
SIM_CXXFLAGS = -std=gnu++17 -O3 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -I. -I$(BUILD) \
	-isystem $(VERILATOR_INC) -isystem $(VERILATOR_INC)/vltstd -DVM_COVERAGE=0 -DVM_SC=0 \
	-DVM_TRACE_VCD=0

# $(call sim_library,unit,library,verilator flags,defines,compiler flags of the model)
define sim_library
$(BUILD)/verilated/$(2)/Vmr_unit.mk: $(SIM_DEPS_$(1))
	@mkdir -p $$(@D)
	@echo "  VERIL $(2)"
	@$$(VERILATOR) --cc -Wall --assert -O3 --prefix Vmr_unit --top-module $(1)_kernel --Mdir $$(@D) \
		-Irtl/common -Irtl/$(1) $(3) $(SIM_SV_$(1))

$(SIM_LIBDIR)/lib$(2).so: $(BUILD)/verilated/$(2)/Vmr_unit.mk $(SIM_CXX) $(SIM_HDR)
	@mkdir -p $$(@D)
	@echo "  CXX   $(2)"
	@+$$(MAKE) --no-print-directory -s -C $(BUILD)/verilated/$(2) -f Vmr_unit.mk Vmr_unit__ALL.a CXX="$$(CXX)" \
		OPT_FAST="$(5) -fPIC -fvisibility=hidden" OPT_SLOW="-O1 -fPIC -fvisibility=hidden" \
		OPT_GLOBAL="-O2 -fPIC -fvisibility=hidden" > /dev/null
	@$$(CXX) $$(SIM_CXXFLAGS) $(SIM_DEFS_$(1)) $(4) -w -include sim/verilated_hooks.h \
		-I$(BUILD)/verilated/$(2) -shared \
		-Wl,-z,defs -o $$@ $(SIM_CXX) $(BUILD)/verilated/$(2)/Vmr_unit__ALL.a \
		$$(VERILATOR_INC)/verilated.cpp $$(VERILATOR_INC)/verilated_threads.cpp \
		$(if $(findstring trace,$(3)),$$(VERILATOR_INC)/verilated_fst_c.cpp -lz) -pthread
endef

SIM_FAST := --x-assign fast --x-initial fast --output-split 20000
SIM_SLOW := --x-assign unique --x-initial unique --trace-fst --trace-structs --output-split 20000
SIM_FAST_DEFS := -DVM_TRACE=0 -DVM_TRACE_FST=0
SIM_SLOW_DEFS := -DVM_TRACE=1 -DVM_TRACE_FST=1 -DMR_SIM_XINIT=1
$(eval $(call sim_library,rgu,mr_sim_rgu,$(SIM_FAST),$(SIM_FAST_DEFS),-O3))
$(eval $(call sim_library,rgu,mr_sim_rgu_debug,$(SIM_SLOW),$(SIM_SLOW_DEFS),-O1))
$(eval $(call sim_library,pnm,mr_sim_pnm,$(SIM_FAST),$(SIM_FAST_DEFS),-O3))
$(eval $(call sim_library,pnm,mr_sim_pnm_debug,$(SIM_SLOW),$(SIM_SLOW_DEFS),-O1))
