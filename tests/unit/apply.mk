$(eval $(call unit_test,unit/rgu_apply,tests/unit/rgu_apply_test.cpp,$(GOLDEN_LIB)))
