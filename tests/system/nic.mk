# The compute-NIC against an independent reading of its specification.
NIC_SUPPORT := tests/system/harness.py tests/system/files.py $(wildcard tests/system/nic/*.py)
$(eval $(call script_test,system/nic_replay,tests/system/nic_replay.py,$(NIC_SUPPORT) $(MILLRACE)))
$(eval $(call script_test,system/nic_merge,tests/system/nic_merge.py,$(NIC_SUPPORT) $(MILLRACE)))
$(eval $(call script_test,system/nic_fuzz,tests/system/nic_fuzz.py,$(NIC_SUPPORT) $(MILLRACE)))
$(eval $(call script_test,system/nic_bad_input,tests/system/nic_bad_input.py,$(NIC_SUPPORT) $(MILLRACE)))
$(eval $(call script_test,system/nic_decode,tests/system/nic_decode.py,$(NIC_SUPPORT) $(MILLRACE)))
$(eval $(call script_test,system/nic_tools,tests/system/nic_tools.py,$(NIC_SUPPORT) $(MILLRACE)))

# Fuzzing at full size, merges by the thousand, every length of a KV block to every address.
SOAKS += soak-nic-fuzz soak-nic-bound soak-nic-replay
.PHONY: soak-nic-fuzz soak-nic-bound soak-nic-replay
soak-nic-fuzz: $(ALL)
	@MR_NIC_FUZZ_BYTES=1e8 MR_NIC_FUZZ_SIM=2e6 BUILD="$(BUILD)" $(PYTHON) tests/system/nic_fuzz.py
soak-nic-bound: $(ALL)
	@MR_NIC_MERGES=2000 BUILD="$(BUILD)" $(PYTHON) tests/system/nic_merge.py
soak-nic-replay: $(ALL)
	@MR_NIC_SHARE=1 BUILD="$(BUILD)" $(PYTHON) tests/system/nic_replay.py

# The language model over a cluster of NICs.
$(eval $(call script_test,system/nic_lm,tests/system/nic_lm.py,tests/system/harness.py $(MILLRACE)))
