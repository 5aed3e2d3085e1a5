# The hybrid multiplier's rivals: binary lanes, exact and truncated, and hybrid lanes of one fixed length.
$(eval $(call rtl_test,rtl/pnm_mult_rival,mult_rival_tb,rtl/pnm/pnm_stream_pkg.sv tests/rtl/pnm/mult_rival_tb.sv \
	rtl/pnm/pnm_mult_bin.sv rtl/pnm/pnm_mult_short.sv,tests/rtl/pnm/mult_rival.cpp,$(GOLDEN_LIB)))
$(BUILD)/tests/rtl/pnm_mult_rival: tests/rtl/common/bench.hpp
