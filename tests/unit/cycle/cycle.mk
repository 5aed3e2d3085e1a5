KV_OBJS := $(call objs,$(wildcard host/kv/*.c))
$(eval $(call unit_test,unit/cycle,$(wildcard tests/unit/cycle/*.cpp),$(CYCLE_LIB) $(KV_OBJS)))
