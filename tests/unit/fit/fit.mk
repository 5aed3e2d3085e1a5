$(eval $(call unit_test,unit/rgu_fit,tests/unit/fit/rgu_fit_test.cpp host/units/rgu_fit.c,$(GOLDEN_LIB)))
