# Pattern rules and the few recipes that every room needs. Read by the top Makefile.

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "  CXX   $<"
	@$(CXX) $(CXXFLAGS_ALL) -MMD -MP -c $< -o $@

# Object files of sources: $(call objs,a.c b.cpp)
objs = $(addprefix $(BUILD)/obj/,$(addsuffix .o,$(basename $(1))))

# A CppUTest executable: $(eval $(call unit_test,name,sources,libraries to depend on,more to link))
define unit_test
TESTS += $(BUILD)/tests/$(1)
$(call objs,$(2)): CXXFLAGS += $(CPPUTEST_CFLAGS)
$(BUILD)/tests/$(1): $(call objs,$(2)) $(3)
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$$(CXX) $$(OPT) -o $$@ $$^ $(4) $$(CPPUTEST_LIBS) -lm
endef

# A script as a test: $(eval $(call script_test,name,script,what it needs to be built))
define script_test
TESTS += $(BUILD)/tests/$(1)
$(BUILD)/tests/$(1): $(2) $(3)
	@mkdir -p $$(@D)
	@ln -sfn $$(abspath $(2)) $$@
	@touch -h $$@
endef

# Verilator's own run-time files, compiled once for every model.
VERILATOR_ROOT_DIR := $(shell $(VERILATOR) --getenv VERILATOR_ROOT 2>/dev/null)
VERILATOR_INC = $(VERILATOR_ROOT_DIR)/include
VERILATED_CXXFLAGS = -std=gnu++17 -O2 -fPIC -w -I$(VERILATOR_INC) -I$(VERILATOR_INC)/vltstd \
	-DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=1 -DVM_TRACE_FST=1 -DVM_TRACE_VCD=0
LIBVERILATED = $(BUILD)/lib/libverilated.a
VERILATED_LIBS = -lz -pthread

$(BUILD)/obj/verilated/%.o:
	@mkdir -p $(@D)
	@echo "  CXX   $*"
	@$(CXX) $(VERILATED_CXXFLAGS) -c $(VERILATOR_INC)/$*.cpp -o $@

$(LIBVERILATED): $(addprefix $(BUILD)/obj/verilated/,verilated.o verilated_threads.o verilated_fst_c.o)
	@mkdir -p $(@D)
	@$(AR) rcs $@ $^

# Warnings are errors; assertions live; every flip-flop that is not reset starts with noise.
VERILATOR_FLAGS = -Wall --assert --trace-fst --x-initial unique \
	--x-assign unique -Irtl/common -Irtl/rgu -Irtl/nic -Irtl/pnm

# How a simulated module is compiled for its test; one that is large lowers it for its own target.
RTL_OPT := -O2

# A module under test: $(eval $(call rtl_test,name,top module,SystemVerilog files (packages first),
#   C++ bench files,libraries,more Verilator flags)). The bench includes "V<top>.h" and has main().
define rtl_test
TESTS += $(BUILD)/tests/$(1)
$(BUILD)/verilated/$(1)/V$(2)__ALL.a: $(3)
	@mkdir -p $$(@D)
	@echo "  VERIL $(1) ($(2))"
	@$$(VERILATOR) --cc $$(VERILATOR_FLAGS) $(6) --top-module $(2) --Mdir $$(@D) $(3) > /dev/null
	@tools/sv-depends $$@ $$(@D)/V$(2)__ver.d > $$(@D)/rebuild.dep
	@$$(MAKE) --no-print-directory -s -C $$(@D) -f V$(2).mk V$(2)__ALL.a CXX="$$(CXX)" \
		OPT_FAST="$$(RTL_OPT) -fPIC" OPT_SLOW="-O0 -fPIC" OPT_GLOBAL="-O2" > /dev/null
$(BUILD)/tests/$(1): $(4) $(BUILD)/verilated/$(1)/V$(2)__ALL.a $(LIBVERILATED) $(5)
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$$(CXX) $$(CXXFLAGS_ALL) $$(CPPUTEST_CFLAGS) -MMD -MP -MT $$@ -I$(BUILD)/verilated/$(1) \
		-isystem $$(VERILATOR_INC) -isystem $$(VERILATOR_INC)/vltstd -o $$@ \
		$(4) $(BUILD)/verilated/$(1)/V$(2)__ALL.a $(5) $$(LIBVERILATED) \
		$$(CPPUTEST_LIBS) $$(VERILATED_LIBS) -lm
endef
