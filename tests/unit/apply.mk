# The apply mode: golden model against the definition, compute kernels (as C) against the golden model.
$(eval $(call unit_test,unit/rgu_apply,tests/unit/rgu_apply_test.cpp,$(GOLDEN_LIB) \
	$(BUILD)/obj/kernels/rgu_apply.cl.o $(BUILD)/obj/kernels/rgu_tile.cl.o))
