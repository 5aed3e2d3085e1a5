# The vector side of the near-memory unit.
$(eval $(call rtl_test,rtl/pnm/vec,pnm_vec,rtl/pnm/pnm_desc_pkg.sv rtl/pnm/pnm_vec.sv,tests/rtl/pnm/vec.cpp,$(GOLDEN_LIB)))
$(BUILD)/tests/rtl/pnm/vec: $(addprefix tests/rtl/pnm/,pnm_bench.hpp desc.hpp)

.PHONY: soak-pnm-vec
soak-pnm-vec: $(BUILD)/tests/rtl/pnm/vec
	@MR_FULL=1 $< -v
SOAKS += soak-pnm-vec
