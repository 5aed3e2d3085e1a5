# The hybrid multiplier: every generator in one model, and its shift registers alone.
PNM_MULT_SV := $(addprefix rtl/pnm/pnm_,stream_pkg.sv lfsr.sv mult.sv mult_lane.sv mult_set.sv stream_lfsr.sv \
	stream_sobol.sv) rtl/common/mr_stream_check.sv
$(eval $(call rtl_test,rtl/pnm_mult,mult_tb,rtl/pnm/pnm_stream_pkg.sv tests/rtl/pnm/mult_tb.sv \
	$(filter-out %_pkg.sv,$(PNM_MULT_SV)),tests/rtl/pnm/mult.cpp,$(GOLDEN_LIB)))
$(BUILD)/tests/rtl/pnm_mult: tests/rtl/common/bench.hpp
