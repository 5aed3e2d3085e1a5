$(eval $(call unit_test,unit/kv,$(wildcard tests/unit/kv/*.cpp),$(call objs,host/kv/estimate.c host/kv/policies.c)))
