# The golden NIC: its arithmetic against the definition in extended precision, its timers and slots.
$(eval $(call unit_test,unit/golden_nic,$(addprefix tests/unit/golden_nic/,main.cpp merge_test.cpp \
	slots_test.cpp),$(GOLDEN_LIB)))
