# Apply mode of the RGU, with tables, memory and row scales played by the bench.
RGU_APPLY_SV := rtl/rgu/rgu_pkg.sv rtl/rgu/rgu_spin_pkg.sv \
	$(addprefix rtl/rgu/rgu_apply,.sv _walk.sv _wht.sv _ram.sv _tab.sv _x.sv _mac.sv _acc.sv _y.sv) \
	$(addprefix rtl/common/mr_,fp32_unpack.sv fp_consts.sv fp_round.sv fx_scale.sv fx_to_fp.sv \
	stream_check.sv)
$(eval $(call rtl_test,rtl/rgu/apply,rgu_apply,$(RGU_APPLY_SV),tests/rtl/rgu/apply.cpp,$(GOLDEN_LIB)))
$(BUILD)/tests/rtl/rgu/apply: tests/rtl/common/bench.hpp

# The whole board wrapper on apply jobs, through the simulator libraries.
APPLY_TOP := $(BUILD)/tests/rtl/rgu/apply_top
TESTS += $(APPLY_TOP)
$(APPLY_TOP): $(call objs,tests/rtl/rgu/apply_top.cpp) $(GOLDEN_LIB) $(SIM_RGU) $(SIM_RGU_DEBUG)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) -o $@ $(call objs,tests/rtl/rgu/apply_top.cpp) $(GOLDEN_LIB) -ldl -lm

BENCHES += bench-apply
.PHONY: bench-apply
bench-apply: $(APPLY_TOP)
	@echo "bench: apply mode against generation (docs/rgu-apply.md)"
	@$(APPLY_TOP) --bench
SYNTHS += rgu_apply
