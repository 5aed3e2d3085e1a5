$(eval $(call unit_test,unit/kv,$(wildcard tests/unit/kv/*.cpp),$(call objs,$(wildcard host/kv/*.c))))
