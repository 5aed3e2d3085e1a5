KV_OBJS := $(call objs,host/kv/estimate.c host/kv/policies.c)
$(eval $(call unit_test,unit/cycle,$(wildcard tests/unit/cycle/*.cpp),$(CYCLE_LIB) $(KV_OBJS)))
