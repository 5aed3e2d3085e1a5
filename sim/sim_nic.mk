# A cluster of Verilated NICs behind host/nic/port.h, in the process of who asks for it.
#   libmr_sim_nic.so        for speed: registers start from zero, no tracing
#   libmr_sim_nic_debug.so  FST tracing, random initial values
# Assertions are alive in both.
SIM_NIC := $(SIM_LIBDIR)/libmr_sim_nic.so
SIM_NIC_DEBUG := $(SIM_LIBDIR)/libmr_sim_nic_debug.so
ALL += $(SIM_NIC)

SIM_NIC_SV := $(wildcard rtl/nic/*_pkg.sv) rtl/kernels/nic_kernel.sv
SIM_NIC_DEPS := $(wildcard rtl/common/*.sv rtl/nic/*.sv) $(SIM_NIC_SV)
SIM_NIC_CXX := sim/nic/cluster.cpp sim/nic/node.cpp sim/verilated_text.cpp sim/axi_memory.cpp sim/options.cpp
SIM_NIC_OBJ := $(call objs,sim/net/switch.c models/cycle/network.c host/nic/address.c)
SIM_NIC_HDR := $(wildcard sim/*.h sim/*.hpp sim/nic/*.hpp sim/net/*.h host/nic/*.h) \
	host/include/millrace/nic_regs.h host/include/millrace/nic_desc.h

# $(call sim_nic_library,name,verilator flags,defines,compiler flags of the model,sources,library,
#   what the model depends on)
define sim_nic_library
$(BUILD)/verilated/$(1)/Vmr_nic.mk: $(7)
	@mkdir -p $$(@D)
	@echo "  VERIL $(1)"
	@$$(VERILATOR) --cc -Wall --assert -O3 --prefix Vmr_nic --top-module nic_kernel --Mdir $$(@D) \
		-Irtl/common -Irtl/nic $(2) $(5)

$(6): $(BUILD)/verilated/$(1)/Vmr_nic.mk $(SIM_NIC_CXX) $(SIM_NIC_HDR) $(SIM_NIC_OBJ)
	@mkdir -p $$(@D)
	@echo "  CXX   $(1)"
	@+$$(MAKE) --no-print-directory -s -C $(BUILD)/verilated/$(1) -f Vmr_nic.mk Vmr_nic__ALL.a CXX="$$(CXX)" \
		OPT_FAST="$(4) -fPIC -fvisibility=hidden" OPT_SLOW="-O0 -fPIC -fvisibility=hidden" \
		OPT_GLOBAL="-O2 -fPIC -fvisibility=hidden" > /dev/null
	@$$(CXX) $$(SIM_CXXFLAGS) -Ihost/include $(3) -w -include sim/verilated_hooks.h \
		-I$(BUILD)/verilated/$(1) -shared -Wl,-z,defs -Wl,-Bsymbolic -o $$@ $(SIM_NIC_CXX) $(SIM_NIC_OBJ) \
		$(BUILD)/verilated/$(1)/Vmr_nic__ALL.a \
		$$(VERILATOR_INC)/verilated.cpp $$(VERILATOR_INC)/verilated_threads.cpp \
		$(if $(findstring trace,$(2)),$$(VERILATOR_INC)/verilated_fst_c.cpp -lz) -pthread
endef

# -O1: the large files compile in a third of the time of -O2; the NIC simulates at 92 % of the speed.
$(eval $(call sim_nic_library,mr_sim_nic,--x-assign fast --x-initial fast --output-split 20000,\
	-DVM_TRACE=0 -DVM_TRACE_FST=0,-O1,$(SIM_NIC_SV),$(SIM_NIC),$(SIM_NIC_DEPS)))
$(eval $(call sim_nic_library,mr_sim_nic_debug,--x-assign unique --x-initial unique --trace-fst \
	--trace-structs --output-split 20000,-DVM_TRACE=1 -DVM_TRACE_FST=1,-O1,$(SIM_NIC_SV),$(SIM_NIC_DEBUG),$(SIM_NIC_DEPS)))
