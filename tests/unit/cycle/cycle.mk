$(eval $(call unit_test,unit/cycle,$(wildcard tests/unit/cycle/*.cpp),$(CYCLE_LIB)))
