# The golden model against the definition, written a second time, and its rounding against MPFR.
$(eval $(call unit_test,unit/golden_accuracy,$(addprefix tests/unit/golden/,main.cpp support.cpp \
	oracle.cpp accuracy_test.cpp traps_test.cpp round_test.cpp image_test.cpp),$(GOLDEN_LIB),-lmpfr -lgmp))
