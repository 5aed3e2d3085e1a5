# The near-memory unit and its flows against an independent reading of their pages.
PNM_ORACLE := $(wildcard tests/system/pnm/*.py) tests/system/files.py tests/system/harness.py
$(eval $(call script_test,system/pnm_oracle,tests/system/pnm_oracle.py,$(PNM_ORACLE) docs/pnm-arithmetic.md $(MILLRACE)))
$(eval $(call script_test,system/pnm_flows_oracle,tests/system/pnm_flows_oracle.py,$(PNM_ORACLE) models/zoo/flows/FORMAT.md \
	$(MILLRACE)))
$(eval $(call script_test,system/pnm_engine_oracle,tests/system/pnm_engine_oracle.py,$(PNM_ORACLE) docs/pnm-descriptors.md \
	docs/pnm-arithmetic.md $(MILLRACE)))

# Every generator, length and cut; every flow.
SOAKS += soak-pnm-oracle
.PHONY: soak-pnm-oracle
soak-pnm-oracle: $(ALL)
	@MR_PNM_ALL=1 BUILD="$(BUILD)" $(PYTHON) tests/system/pnm_oracle.py
	@MR_PNM_ALL=1 BUILD="$(BUILD)" $(PYTHON) tests/system/pnm_flows_oracle.py
	@MR_PNM_ROUNDS=100 BUILD="$(BUILD)" $(PYTHON) tests/system/pnm_engine_oracle.py
