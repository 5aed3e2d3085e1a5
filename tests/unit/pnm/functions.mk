# The vector side's functions.
$(eval $(call unit_test,unit/pnm/functions,tests/unit/pnm/functions_test.cpp,$(GOLDEN_LIB),-lmpfr -lgmp))
