# The function units of the NIC, every argument.
$(eval $(call unit_test,unit/nic/fn,tests/unit/nic/fn_test.cpp,))
